/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.c: a user of the library, in C and as C++. all.h is made by consumers.sh: it includes each
 * header that was installed, and names as NEEDED a function of the library that is to be linked.
 */
#include "all.h"

int main(void)
{
	void (*volatile needed)(void) = (void (*)(void))NEEDED;

	return needed && vqb_version() == VQB_VERSION ? 0 : 1;
}
