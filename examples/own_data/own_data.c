/* own_data.c: data of one's own: a table is read into arrays, a network is trained on them, and the same arrays are
 * written to files that amprun trains on.
 *
 *     own_data flowers.so flowers.csv
 *
 * The table has four numbers and a class a line; its first line is a title.  A fifth of the lines is held out for the
 * test.  Writes train.safetensors and test.safetensors.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "amp/amp.h"

enum { FEATURES = 4, MOST = 10000, BATCH = 32, EPOCHS = 60 };

static float x[MOST][FEATURES];
static int32_t targets[MOST];

static int fail(const char *message) {
    fprintf(stderr, "own_data: %s\n", message);
    return 1;
}

/* ---- the data ---------------------------------------------------------------------------------------------------- */

/* The number of rows; 0 where the file is no such table. */
static int read_table(const char *path) {
    char title[1000];
    int rows = 0;
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    if (!fgets(title, sizeof title, file)) title[0] = 0;
    while (rows < MOST && fscanf(file, "%f,%f,%f,%f,%d", &x[rows][0], &x[rows][1], &x[rows][2], &x[rows][3],
                                 &targets[rows]) == FEATURES + 1)
        rows++;
    if (!feof(file)) rows = 0;
    fclose(file);
    return rows;
}

/* In another order, so that a batch has every class, and so do the lines that are held out. */
static void shuffle(int rows) {
    for (int i = rows - 1; i > 0; i--) {
        int k = rand() % (i + 1);
        int32_t target = targets[i];
        targets[i] = targets[k], targets[k] = target;
        for (int f = 0; f < FEATURES; f++) {
            float value = x[i][f];
            x[i][f] = x[k][f], x[k][f] = value;
        }
    }
}

/* Each column with mean 0 and deviation 1 over the first |known| rows: networks learn from such numbers.  A program
 * that uses the network must do the same to what it feeds it. */
static void standardise(int rows, int known) {
    for (int f = 0; f < FEATURES; f++) {
        double mean = 0, square = 0;
        for (int i = 0; i < known; i++) mean += x[i][f] / known;
        for (int i = 0; i < known; i++) square += (x[i][f] - mean) * (x[i][f] - mean) / known;
        for (int i = 0; i < rows; i++) x[i][f] = (float)((x[i][f] - mean) / sqrt(square + 1e-12));
    }
}

/* safetensors: eight bytes that count the header, the header in JSON, the arrays one after another.  The arrays are
 * named as the model's inputs, their first dimension is the sample. */
static int write_arrays(const char *path, int first, int rows) {
    char header[300];
    size_t of_x = sizeof x[0] * (size_t)rows, all = of_x + sizeof targets[0] * (size_t)rows;
    int length = snprintf(header, sizeof header,
                          "{\"x\":{\"dtype\":\"F32\",\"shape\":[%d,%d],\"data_offsets\":[0,%zu]},"
                          "\"targets\":{\"dtype\":\"I32\",\"shape\":[%d],\"data_offsets\":[%zu,%zu]}}",
                          rows, FEATURES, of_x, rows, of_x, all);
    FILE *file = fopen(path, "wb");
    if (!file) return fail(path);
    for (int i = 0; i < 8; i++) putc(i < 4 ? length >> 8 * i & 255 : 0, file); /* little-endian */
    fwrite(header, 1, (size_t)length, file);
    fwrite(x[first], sizeof x[0], (size_t)rows, file); /* numbers are little-endian, too, as they are here */
    fwrite(&targets[first], sizeof targets[0], (size_t)rows, file);
    return fclose(file) ? fail(path) : 0;
}

/* ---- the network ------------------------------------------------------------------------------------------------- */

static int train(amp_session *session, int rows, amp_error *err) {
    amp_step_report report;
    for (int epoch = 1; epoch <= EPOCHS; epoch++) {
        for (int i = 0; i < rows; i += BATCH) {
            const void *inputs[] = {x[i], &targets[i]};
            int n = rows - i < BATCH ? rows - i : BATCH; /* the last batch may be smaller */
            if (amp_step(session, inputs, (amp_sizes){.n = n}, &report, err)) return 1;
        }
        if (epoch % 20 == 0) printf("epoch %d: loss %.3f\n", epoch, report.loss);
    }
    return 0;
}

/* The share of right classes among rows that the training has not seen. */
static int test(amp_session *session, int first, int rows, amp_error *err) {
    double right = 0, accuracy;
    for (int i = first; i < first + rows; i += BATCH) {
        const void *inputs[] = {x[i], &targets[i]};
        int n = first + rows - i < BATCH ? first + rows - i : BATCH;
        if (amp_eval(session, inputs, (amp_sizes){.n = n}, NULL, &accuracy, err)) return 1;
        right += accuracy * n;
    }
    printf("right on %.0f of %d lines that it has not seen\n", right, rows);
    return 0;
}

int main(int argc, char **argv) {
    amp_error err;
    amp_model *model = NULL;
    amp_params *params = NULL;
    amp_session *session = NULL;
    amp_params_options seed = {.struct_size = sizeof seed, .seed = 7};
    amp_session_options options = {.struct_size = sizeof options, .capacity.n = BATCH, .threads = 1};
    if (argc != 3) return fprintf(stderr, "usage: own_data MODEL.so TABLE.csv\n"), 2;
    int rows = read_table(argv[2]), known = rows - rows / 5, failed;
    if (!rows)
        return fail("the table cannot be read: four numbers and a class a line are wanted, after one line of titles");
    shuffle(rows);
    standardise(rows, known);
    if (write_arrays("train.safetensors", 0, known) || write_arrays("test.safetensors", known, rows - known)) return 1;

    failed = amp_model_load(argv[1], NULL, &model, &err) || amp_params_create(model, &seed, &params, &err) ||
             amp_session_create(model, params, &options, &session, &err) || train(session, known, &err) ||
             test(session, known, rows - known, &err) || amp_params_save(params, "flowers.safetensors", NULL, &err);
    if (failed) fail(err.message);
    amp_session_release(session);
    amp_params_release(params);
    amp_model_release(model);
    return failed;
}
