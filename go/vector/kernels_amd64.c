#include "lanes_avx2.h"
#include "kernels_body.h"
