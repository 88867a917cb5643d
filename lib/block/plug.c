/* SPDX-License-Identifier: BSD-3-Clause */
/* plug.c: bios that a thread is going to submit, by queue. */
#include <vqblk/request.h>

int32_t vqb_plug_add(struct vqb_plug *plug, void *queue, struct vqb_bio *bio)
{
	if (!queue)
		return VQB_E_INVALID;
	if (bio->state != VQB_BIO_IDLE)
		return VQB_E_BUSY;
	bio->state = VQB_BIO_PLUGGED;
	bio->own.queue = queue;
	bio->next = NULL;
	if (plug->last)
		plug->last->next = bio;
	else
		plug->first = bio;
	plug->last = bio;
	plug->bios++;
	return VQB_OK;
}

void *vqb_plug_take(struct vqb_plug *plug, struct vqb_bio **list)
{
	void *queue = plug->first ? plug->first->own.queue : NULL;
	struct vqb_bio **taken = list, **left = &plug->first, *bio;

	plug->last = NULL;
	for (bio = plug->first; bio; bio = bio->next) {
		if (bio->own.queue == queue) {
			*taken = bio;
			bio->own.queue = NULL; /* so it may be submitted now */
			taken = &bio->next;
			plug->bios--;
		} else {
			*left = bio;
			left = &bio->next;
			plug->last = bio;
		}
	}
	*taken = NULL;
	*left = NULL;
	return queue;
}

int32_t vqb_plug_remove(struct vqb_plug *plug, struct vqb_bio *bio)
{
	struct vqb_bio **at = &plug->first, *last = NULL;

	while (*at && *at != bio) {
		last = *at;
		at = &last->next;
	}
	if (!*at)
		return VQB_E_LATE;
	*at = bio->next;
	if (plug->last == bio)
		plug->last = last;
	plug->bios--;
	bio->state = VQB_BIO_IDLE;
	bio->next = NULL;
	return VQB_OK;
}
