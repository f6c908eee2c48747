package main

import _ "github.com/tuneinsight/lattigo/v6/ring"
