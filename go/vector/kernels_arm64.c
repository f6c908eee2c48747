#include "lanes_neon.h"
#include "kernels_body.h"
