/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit.h: the one way to the unit-test framework: cmocka, or, where there is no package of it, a
 * stand-in of ours with the few of its names that the tests use (standin.h lists them).
 */
#ifndef VQB_TESTS_UNIT_H
#define VQB_TESTS_UNIT_H

#if defined(VQB_TEST_STANDIN)
#include "standin.h"
#else
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#endif

#endif
