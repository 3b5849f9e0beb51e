/* gradient.c: the table from GradRule to the functions of gradient_*.c. */
#include "passes/training/gradient_rules.h"

#define ROW(rule, function, ...) [GRAD_##rule] = {gradient_##function, {__VA_ARGS__}},
static const Gradient rules[GRAD_RULE_COUNT] = {[GRAD_NONE] = {NULL, {0}}, GRADIENT_RULES(ROW)};
#undef ROW

const Gradient *gradient_rule(GradRule rule) { return rule == GRAD_UNDEFINED ? NULL : &rules[rule]; }
