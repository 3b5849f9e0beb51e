/* gradient.c: finds the gradient of an op in the tables of gradient_*.c. */
#include "passes/training/gradient.h"

const Gradient *const gradient_tables[GRADIENT_TABLES] = {gradient_elementwise_ops, gradient_image_ops,
                                                          gradient_move_ops,        gradient_norm_ops,
                                                          gradient_product_ops,     gradient_reduce_ops};

const Gradient *gradient_of(Opcode code) {
    for (int i = 0; i < GRADIENT_TABLES; i++)
        if (gradient_tables[i][code].make) return &gradient_tables[i][code];
    return NULL;
}
