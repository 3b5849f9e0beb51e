/* gtest.h: what nearly every test includes, compiled once.  Tests still include what they use. */
#ifndef AMP_TESTS_PRECOMPILED_GTEST_H
#define AMP_TESTS_PRECOMPILED_GTEST_H

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#endif
