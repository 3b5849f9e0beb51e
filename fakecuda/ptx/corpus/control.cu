// Functions, recursion, function pointers, printf, assert, switch, local arrays, tables, 64-bit division, structs as parameters.
extern "C" __device__ void __assertfail(const char *, const char *, unsigned, const char *, unsigned long);
struct Pair { int a; float b; long long c; char d[5]; };
struct Holder { const float *values; int n; };
__constant__ float table[16] = { 1.f, 2.5f, -3.f };
__device__ int counters[4] = { 1, 2 };
__device__ int *counter_at = &counters[2];
__device__ const char *words[3] = { "one", "two", "three" };
__device__ struct { char tag; const int *where; short more; } odd = { 'x', counters + 1, 3 };
__device__ double precise = 0.1;
__device__ unsigned char bytes[3][5] = { { 1, 2 }, { 3 } };
__noinline__ __device__ int recurse(int n, Pair *p) { return n <= 1 ? p->a : n * recurse(n - 1, p) + p->d[n % 5]; }
__device__ float twice(float x) { return 2 * x; }
__device__ float thrice(float x) { return 3 * x; }
typedef float (*Fn)(float);
__device__ Fn functions[2] = { twice, thrice };
__noinline__ __device__ Pair swap(Pair p) { Pair q = p; q.a = (int)p.b; q.b = p.a; return q; }
extern "C" __global__ void control(float *y, Pair p, __grid_constant__ const Holder h, int k, long long m, char c, unsigned short u) {
    float local[20];
    for (int i = 0; i < 20; i++) local[i] = i * k;
    switch (k) {
    case 0: y[0] = 1; break;
    case 1: y[1] = local[k]; break;
    case 2: y[2] = 3; // falls through
    case 3: y[3] = 4; break;
    case 4: y[4] = sinf(y[0]); break;
    case 5: y[5] = 6; break;
    case 7: y[6] = 7; break;
    case 8: y[7] = 8; break;
    default: y[8] = 9;
    }
    y[9] = recurse(k, &p) + functions[k & 1](y[0]) + local[(k + 3) % 20] + table[k & 15] + *counter_at + words[k % 3][1] + odd.tag + *odd.where;
    y[10] = (float)(m / k) + (float)(m % (k + 1)) + (float)((unsigned)k / 7) + c + u + precise + bytes[k % 3][k % 5] + h.values[k % h.n];
    p = swap(p);
    y[11] = p.a + p.b + p.c;
    for (int i = 0; i < k; i++) {
        if (y[i] < 0) continue;
        if (y[i] > 100) break;
        for (int j = i; j < k; j += 2) y[j] += i;
    }
    if (k >= 100) __assertfail("k < 100", __FILE__, __LINE__, "control", 1);
    if (k == 3) printf("%d %f %s\n", k, y[0], words[0]);
    asm volatile("//@ %12 = relu");
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %1, 0; @p bra DONE; mov.f32 %0, 0f3F800000;\n DONE: }" : "+f"(y[12]) : "r"(k));
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %1, 0; @p bra DONE; mov.f32 %0, 0f3F800000;\n DONE: }" : "+f"(y[13]) : "r"(k));
}
