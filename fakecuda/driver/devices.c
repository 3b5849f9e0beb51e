/* devices.c: the devices that there are, by FAKECUDA_ARCH.  Limits by compute capability: the CUDA programming
 * guide's table of technical specifications. */
#include <stdio.h>
#include <string.h>

#include "fakecuda/driver/driver.h"

typedef struct DeviceKind {
    int arch;
    const char *name;
    int multiprocessors, shared_optin, shared_per_multiprocessor, threads_per_multiprocessor, blocks_per_multiprocessor;
    int clock_khz, memory_clock_khz, bus_bits, l2_bytes;
} DeviceKind;

static const DeviceKind kinds[] = {
    {75, "Tesla T4 (fakecuda)", 40, 64 << 10, 64 << 10, 1024, 16, 1590000, 5001000, 256, 4 << 20},
    {80, "NVIDIA A100-SXM4-80GB (fakecuda)", 108, 163 << 10, 164 << 10, 2048, 32, 1410000, 1593000, 5120, 40 << 20},
    {86, "NVIDIA RTX A6000 (fakecuda)", 84, 99 << 10, 100 << 10, 1536, 16, 1800000, 8001000, 384, 6 << 20},
    {89, "NVIDIA L40S (fakecuda)", 142, 99 << 10, 100 << 10, 1536, 24, 2520000, 9001000, 384, 96 << 20},
    {90, "NVIDIA H100 80GB HBM3 (fakecuda)", 132, 227 << 10, 228 << 10, 2048, 32, 1980000, 2619000, 5120, 50 << 20},
    {120, "NVIDIA RTX PRO 6000 Blackwell (fakecuda)", 188, 99 << 10, 100 << 10, 1536, 24, 2617000, 14001000, 512,
     128 << 20},
};

static const DeviceKind *kind_of(int arch) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].arch == arch) return &kinds[i];
    return NULL;
}

bool device_arch_known(int arch) { return kind_of(arch) != NULL; }
const char *device_name_of(int arch) { return kind_of(arch)->name; }

/* CUdevice_attribute by its number. */
bool device_attribute_of(int arch, int attribute, int *value) {
    const DeviceKind *k = kind_of(arch);
    const struct {
        int attribute, value;
    } table[] = {
        {1, 1024}, /* max threads per block */
        {2, 1024}, /* max block dim x, y, z */
        {3, 1024},
        {4, 64},
        {5, 2147483647}, /* max grid dim x, y, z */
        {6, 65535},
        {7, 65535},
        {8, SHARED_WITHOUT_OPTIN}, /* max shared memory per block */
        {9, 65536},                /* constant memory */
        {10, 32},                  /* warp size */
        {11, 2147483647},          /* max pitch */
        {12, 65536},               /* registers per block */
        {13, k->clock_khz},
        {14, 512}, /* texture alignment */
        {15, 1},   /* copies beside kernels */
        {16, k->multiprocessors},
        {17, 0}, /* kernel timeout */
        {18, 0}, /* integrated */
        {19, 0}, /* can map host memory: not here */
        {20, 0}, /* compute mode: default */
        {31, 1}, /* concurrent kernels */
        {32, 1}, /* ECC */
        {33, 0}, /* PCI bus, device, domain */
        {34, 0},
        {35, 0}, /* TCC driver */
        {36, k->memory_clock_khz},
        {37, k->bus_bits},
        {38, k->l2_bytes},
        {39, k->threads_per_multiprocessor},
        {40, 2}, /* copy engines */
        {41, 0}, /* unified addressing: not here */
        {50, 0},
        {75, arch / 10},
        {76, arch % 10},
        {78, 0}, /* stream priorities */
        {81, k->shared_per_multiprocessor},
        {82, 65536}, /* registers per multiprocessor */
        {83, 0},     /* managed memory */
        {88, 0},     /* pageable memory access */
        {89, 0},     /* concurrent managed access */
        {95, 0},     /* cooperative launch */
        {97, k->shared_optin},
        {106, k->blocks_per_multiprocessor},
        {111, 1024},       /* shared memory that the system keeps per block */
        {115, 0},          /* memory pools */
        {120, arch >= 90}, /* clusters */
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].attribute == attribute) {
            *value = table[i].value;
            return true;
        }
    return false;
}

static bool is_device(CuDevice device) { return device >= 0 && device < driver.settings.devices; }

CuResult device_count(int *count) {
    if (!count) return CU_INVALID_VALUE;
    *count = driver.settings.devices;
    return CU_SUCCESS;
}

CuResult device_get(CuDevice *device, int ordinal) {
    if (!device) return CU_INVALID_VALUE;
    if (!is_device(ordinal)) return CU_INVALID_DEVICE;
    *device = ordinal;
    return CU_SUCCESS;
}

CuResult device_name(char *name, int size, CuDevice device) {
    if (!name || size <= 0) return CU_INVALID_VALUE;
    if (!is_device(device)) return CU_INVALID_DEVICE;
    snprintf(name, (size_t)size, "%s", device_name_of(driver.settings.arch));
    return CU_SUCCESS;
}

CuResult device_total_memory(size_t *bytes, CuDevice device) {
    if (!bytes) return CU_INVALID_VALUE;
    if (!is_device(device)) return CU_INVALID_DEVICE;
    *bytes = driver.settings.memory;
    return CU_SUCCESS;
}

CuResult device_attribute(int *value, int attribute, CuDevice device) {
    if (!value) return CU_INVALID_VALUE;
    if (!is_device(device)) return CU_INVALID_DEVICE;
    if (device_attribute_of(driver.settings.arch, attribute, value)) return CU_SUCCESS;
    text_add(&report.unknown, "device attribute %d", attribute);
    return CU_INVALID_VALUE;
}
