/* csv_forms.h: what a cell that is no number looks like: 12,5 or 5% or 2024-01-31. */
#ifndef AMP_TOOLS_CSV_FORMS_H
#define AMP_TOOLS_CSV_FORMS_H

#ifdef __cplusplus
extern "C" {
#endif

enum { CSV_FORMS = 11, CSV_FORM_SEVERAL = 9 };

typedef struct CsvForm {
    const char *name;   /* "numbers with a decimal comma" */
    const char *remedy; /* what to write in the table or in the schema */
} CsvForm;

extern const CsvForm csv_form[CSV_FORMS]; /* CSV_FORM_SEVERAL: several numbers in a cell */

/* Bit i: it has form i.  "1,234" has two.  0: it is a word. */
unsigned csv_forms_of(const char *cell);
/* The first form of a cell that is no number; NULL: it is a word. */
const CsvForm *csv_form_of(const char *cell);

#ifdef __cplusplus
}
#endif
#endif
