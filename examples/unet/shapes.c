/* shapes.c: makes pictures of ellipses and rectangles in noise, and marks the ellipses: `image` and `targets`,
 * f32 [COUNT, 1, SIZE, SIZE], in a safetensors file for amprun.
 *
 *     shapes FILE COUNT SEED [SIZE]
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

/* Uniform in [low, high): splitmix64 (Steele, Lea and Flood 2014). */
static double between(double low, double high) {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return low + (high - low) * (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

typedef struct Shape {
    int is_ellipse;
    double x, y, wide, high, angle, light; /* half axes; what it adds to the background */
} Shape;

static Shape any_shape(int size, int is_ellipse) {
    Shape s = {is_ellipse, 0, 0, 0, 0, 0, 0};
    s.x = between(0.2, 0.8) * size, s.y = between(0.2, 0.8) * size;
    s.wide = between(0.14, 0.3) * size, s.high = between(0.14, 0.3) * size;
    s.angle = between(0.0, 3.14159265358979);
    s.light = between(0.5, 1.0);
    return s;
}

static int covers(const Shape *s, double x, double y) {
    double c = cos(s->angle), d = sin(s->angle);
    double u = ((x - s->x) * c + (y - s->y) * d) / s->wide, v = ((y - s->y) * c - (x - s->x) * d) / s->high;
    return s->is_ellipse ? u * u + v * v <= 1.0 : fabs(u) <= 1.0 && fabs(v) <= 1.0;
}

/* One to three ellipses and up to two rectangles, the later over the earlier, on light that rises to one side. */
static void draw(float *image, float *targets, int size) {
    Shape shapes[5];
    int ellipses = 1 + (int)between(0, 3), rectangles = (int)between(0, 3), count = ellipses + rectangles;
    for (int i = 0; i < count; i++) shapes[i] = any_shape(size, i >= rectangles);
    double across = between(-0.5, 0.5), down = between(-0.5, 0.5);
    for (int at = 0; at < size * size; at++) {
        double x = at % size + 0.5, y = at / size + 0.5, light = (across * x + down * y) / size;
        const Shape *top = NULL;
        for (int i = 0; i < count; i++)
            if (covers(&shapes[i], x, y)) top = &shapes[i];
        image[at] = (float)(light + (top ? top->light : 0.0) + between(-0.1, 0.1));
        targets[at] = top && top->is_ellipse ? 1.0f : 0.0f;
    }
}

/* The header: its length, then JSON (https://github.com/huggingface/safetensors). */
static int write_file(const char *path, int count, int size, const float *image, const float *targets) {
    char json[512];
    unsigned long long bytes = (unsigned long long)count * (unsigned)(size * size) * sizeof *image;
    int length = snprintf(json, sizeof json,
                          "{\"image\":{\"dtype\":\"F32\",\"shape\":[%d,1,%d,%d],\"data_offsets\":[0,%llu]},"
                          "\"targets\":{\"dtype\":\"F32\",\"shape\":[%d,1,%d,%d],\"data_offsets\":[%llu,%llu]}}",
                          count, size, size, bytes, count, size, size, bytes, 2 * bytes);
    uint64_t header = (uint64_t)length;
    FILE *file = fopen(path, "wb");
    if (!file) return 0;
    int good = fwrite(&header, sizeof header, 1, file) == 1 && fwrite(json, header, 1, file) == 1 &&
               fwrite(image, bytes, 1, file) == 1 && fwrite(targets, bytes, 1, file) == 1;
    return fclose(file) == 0 && good;
}

int main(int argc, char **argv) {
    int count = argc > 3 ? atoi(argv[2]) : 0, size = argc > 4 ? atoi(argv[4]) : 32;
    if (argc < 4 || argc > 5 || count < 1 || count > 100000 || size < 8 || size > 1024) {
        fprintf(stderr, "usage: shapes FILE COUNT SEED [SIZE]   (up to 100000 pictures of 8 to 1024 pixels a side)\n");
        return 2;
    }
    state = strtoull(argv[3], NULL, 10) * 0x9e3779b97f4a7c15u;
    size_t pixels = (size_t)size * (size_t)size;
    float *image = malloc((size_t)count * pixels * sizeof *image),
          *targets = malloc((size_t)count * pixels * sizeof *targets);
    int good = image && targets;
    for (int i = 0; i < count && good; i++) draw(image + (size_t)i * pixels, targets + (size_t)i * pixels, size);
    good = good && write_file(argv[1], count, size, image, targets);
    if (!good) fprintf(stderr, "shapes: %s cannot be written\n", argv[1]);
    free(image);
    free(targets);
    return good ? 0 : 1;
}
