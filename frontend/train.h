/* train.h: a train block while it is elaborated. */
#ifndef AMP_FRONTEND_TRAIN_H
#define AMP_FRONTEND_TRAIN_H

#include "frontend/elaborate.h"

typedef enum SettingKind {
    SETTING_LOSS,
    SETTING_OPTIMIZER,
    SETTING_CLIP_NORM,
    SETTING_CLIP_VALUE,
    SETTING_ACCUMULATE,
    SETTING_COUNT
} SettingKind;

typedef struct TrainBlock {
    const Decl *decl;
    Train train;
    const Stmt *seen[SETTING_COUNT]; /* the statement that set it */
    const Stmt *first_named_loss;
    VEC(Val) losses;
    bool wrong_loss; /* reported */
} TrainBlock;

/* ---- measures.c: losses and metrics ---------------------------------------------------------------------- */

void elaborate_loss(Elab *e, TrainBlock *b, const Stmt *s);       /* loss = value */
void elaborate_named_loss(Elab *e, TrainBlock *b, const Stmt *s); /* loss NAME = value */
void elaborate_metric(Elab *e, const Stmt *s);
/* The sum of the values as the result |name|. */
Val add_loss_result(Elab *e, Loc loc, const Val *losses, int count, const char *name);

/* ---- settings.c: what else a train block sets ------------------------------------------------------------ */

void elaborate_setting(Elab *e, TrainBlock *b, const Stmt *s);
void elaborate_group(Elab *e, TrainBlock *b, const Stmt *s);
bool trains(const Train *train, const State *state); /* a parameter that |only| covers */

#endif
