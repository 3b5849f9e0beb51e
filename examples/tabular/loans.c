/* loans.c: a table of made-up loans, as CSV: three numbers, three categories, and whether each was paid back late.
 *
 *     loans ROWS SEED >loans.csv
 *
 * What decides are interactions, which no sum over columns shows: each trade does well in some regions, age counts one
 * way or the other by the purpose, and a debt far from what the income would suggest is a risk, above or below.  One
 * cell of income in 20 is empty.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { TRADES = 16, REGIONS = 10, PURPOSES = 8, HIDDEN = 3 };

static const char *const trades[TRADES] = {"baker",  "barber", "builder", "butcher",   "carpenter", "chemist",
                                           "clerk",  "cook",   "doctor",  "driver",    "farmer",    "fisher",
                                           "grocer", "nurse",  "teacher", "translator"};
static const char *const regions[REGIONS] = {"coast", "delta", "east",  "forest", "hills",
                                             "lakes", "north", "plain", "south",  "west"};
static const char *const purposes[PURPOSES] = {"boat", "car", "garden", "house", "school", "shop", "tools", "travel"};

static uint64_t state;

/* Uniform in (0, 1): splitmix64 (Steele, Lea and Flood 2014). */
static double uniform(void) {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
}

static int draw(int count) { return (int)(uniform() * count); }

/* Box and Muller 1958. */
static double normal(void) {
    double length = sqrt(-2.0 * log(uniform()));
    return length * cos(6.283185307179586 * uniform());
}

/* Which trade does well where: the product of hidden traits of both, each a direction of length 1. */
typedef struct World {
    double trade[TRADES][HIDDEN], region[REGIONS][HIDDEN];
} World;

static void direction(double *v) {
    double square = 0.0;
    for (int i = 0; i < HIDDEN; i++) v[i] = normal(), square += v[i] * v[i];
    for (int i = 0; i < HIDDEN; i++) v[i] /= sqrt(square);
}

static void make_world(World *w) {
    for (int i = 0; i < TRADES; i++) direction(w->trade[i]);
    for (int i = 0; i < REGIONS; i++) direction(w->region[i]);
}

/* The logit of paying late; |income|, |debt| and |age| have mean 0 and deviation 1. */
static double risk(const World *w, int trade, int region, int purpose, double income, double debt, double age) {
    double fit = 0.0;
    for (int i = 0; i < HIDDEN; i++) fit += w->trade[trade][i] * w->region[region][i];
    double by_age = purpose % 2 ? age : -age;
    return 6.0 * fit + 3.0 * by_age + 5.0 * (fabs(debt - income) - 1.1) + 0.5 * age;
}

static void print_row(const World *w) {
    int trade = draw(TRADES), region = draw(REGIONS), purpose = draw(PURPOSES);
    double income = normal(), debt = normal(), age = normal();
    double logit = risk(w, trade, region, purpose, income, debt, age);
    const char *late = uniform() < 1.0 / (1.0 + exp(-logit)) ? "late" : "in time";
    if (uniform() < 0.05) printf(",");
    else printf("%.0f,", 30000.0 + 8000.0 * income);
    printf("%.0f,%.1f,%s,%s,%s,%s\n", 12000.0 + 4000.0 * debt, 45.0 + 9.0 * age, trades[trade], regions[region],
           purposes[purpose], late);
}

int main(int argc, char **argv) {
    long rows = argc == 3 ? atol(argv[1]) : 0;
    World world;
    if (rows < 1) return fprintf(stderr, "usage: loans ROWS SEED >loans.csv\n"), 2;
    state = strtoull(argv[2], NULL, 10);
    make_world(&world);
    puts("income,debt,age,trade,region,purpose,paid");
    for (long i = 0; i < rows; i++) print_row(&world);
    return fflush(stdout) || ferror(stdout);
}
