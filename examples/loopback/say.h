/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * say.h: what the program tells on stderr: always one line.
 */
#ifndef LOOPBACK_SAY_H
#define LOOPBACK_SAY_H

#define PROGRAM "vqblk-loopback"

/* "vqblk-loopback: " and the text, as one line. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The text alone, where it says itself what it is about. */
void complain_of(const char *text);

#endif
