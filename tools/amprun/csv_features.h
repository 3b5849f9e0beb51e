/* csv_features.h: which columns of a table feed which input of a model, and with what. */
#ifndef AMP_TOOLS_CSV_FEATURES_H
#define AMP_TOOLS_CSV_FEATURES_H

#include "tools/amprun/csv_table.h"
#include "tools/amprun/data.h"

typedef struct CsvFeature {
    int column;
    bool missing; /* 1 where the column is missing, else 0; not its value */
} CsvFeature;

typedef VEC(CsvFeature) CsvFeatures;

/* |features|: by input, in the order in which they are fed.  Reports and returns 1 where they do not fit the model. */
int csv_choose_features(const CsvTable *t, const DataInputs *inputs, CsvFeatures *features);

/* The id of each word of each category, for csv_feature_value. */
void csv_number_words(CsvTable *t);
/* What is fed for a row.  Reports and returns 1 for a category that was not trained. */
int csv_feature_value(const CsvTable *t, const CsvFeature *f, int row, double *out);

#endif
