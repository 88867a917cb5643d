/* SPDX-License-Identifier: BSD-3-Clause */
/* features.c: which feature bits may be offered or accepted together. */
#include <stdbool.h>

#include <vqblk/ring.h>

static bool has(uint64_t bits, uint32_t bit)
{
	return bit < 64 && (bits >> bit & 1);
}

static bool breaks(uint64_t bits, const struct vqb_feature_rule *rule)
{
	return has(bits, rule->bit) && !has(bits, rule->needs);
}

/* Drops bits without their prerequisite until all that are left have it. */
static uint64_t closed(uint64_t bits, const struct vqb_feature_rule *rule, uint32_t rules)
{
	uint64_t before;

	do {
		before = bits;
		for (uint32_t i = 0; i < rules; i++)
			if (breaks(bits, &rule[i]))
				bits &= ~VQB_FEATURE(rule[i].bit);
	} while (bits != before);
	return bits;
}

uint64_t vqb_features_mask(uint64_t available, uint64_t wanted, const struct vqb_feature_rule *rule,
			   uint32_t rules)
{
	uint64_t known = VQB_RING_FEATURES | VQB_TYPE_FEATURES;

	wanted |= VQB_FEATURE(VQB_F_VERSION_1);
	return closed(available & wanted & known, rule, rules);
}

int32_t vqb_features_check(uint64_t offered, uint64_t accepted, const struct vqb_feature_rule *rule,
			   uint32_t rules)
{
	if (accepted & ~offered || !has(accepted, VQB_F_VERSION_1) ||
	    closed(accepted, rule, rules) != accepted)
		return VQB_E_INVALID;
	return VQB_OK;
}

/* A legacy peer has 32 bits. */
#define LEGACY_BITS UINT64_C(0xffffffff)

uint64_t vqb_features_mask_legacy(uint64_t available, uint64_t wanted,
				  const struct vqb_feature_rule *rule, uint32_t rules)
{
	uint64_t known = VQB_LEGACY_FEATURES | (VQB_TYPE_FEATURES & LEGACY_BITS);

	wanted |= VQB_FEATURE(VQB_F_ANY_LAYOUT);
	return closed(available & wanted & known, rule, rules);
}

int32_t vqb_features_check_legacy(uint64_t offered, uint64_t accepted,
				  const struct vqb_feature_rule *rule, uint32_t rules)
{
	if (accepted & ~(offered & LEGACY_BITS) || closed(accepted, rule, rules) != accepted)
		return VQB_E_INVALID;
	return VQB_OK;
}
