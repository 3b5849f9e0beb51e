/* loadstore.c: ld and st of all spaces. */
#include "fakecuda/exec/few_bytes.h"
#include "fakecuda/exec/inner.h"

enum { MOST_ELEMENTS = 8, MOST_BYTES = 32 };

typedef struct Transfer {
    PtxSpace space;
    Address address;
    Operand elements[MOST_ELEMENTS];
    bool used[MOST_ELEMENTS];
    int count, how;
    uint32_t size, element_size;
    bool is_signed, fence_before, fence_after, of_device;
} Transfer;

/* ---- counting ---- */

/* Requests of a generic access: those lanes that are in global memory, and those in shared memory. */
static void count_request(Warp *w, PtxSpace space, const uint64_t address[LANES], uint32_t size, bool store) {
    uint32_t global = space == PTX_GLOBAL || space == PTX_CONST ? w->active : 0,
             shared = space == PTX_SHARED ? w->active : 0;
    uint64_t offset[LANES];
    const uint64_t *shared_offset = address;
    if (space == PTX_SPACE_NONE) {
        shared_offset = offset;
        FOR_LANES(l, w->active) {
            offset[l] = address[l];
            PtxSpace s = access_resolve(w, &offset[l]);
            global |= (uint32_t)(s == PTX_GLOBAL) << l;
            shared |= (uint32_t)(s == PTX_SHARED) << l;
        }
    }
    if (global && space != PTX_CONST) count_global(w->block, address, global, size, store);
    if (shared) count_shared(w->block, shared_offset, shared, size);
}

/* ---- running ---- */

static uint64_t extend(const Transfer *t, uint64_t v) {
    if (!t->is_signed) return v;
    int shift = 64 - 8 * (int)t->element_size;
    return (uint64_t)((int64_t)(v << shift) >> shift);
}

static void take_elements(Warp *w, const Transfer *t, int lane, const uint8_t *bytes) {
    for (int k = 0; k < t->count; k++) {
        const uint64_t v = few_as_number(bytes + (uint32_t)k * t->element_size, t->element_size);
        if (t->used[k]) set_lane(w, &t->elements[k], lane, extend(t, v));
    }
}

/* After the value was taken: what it was written by is released by then, whichever host thread that was. */
static uint64_t note_strong(Warp *w, int lane, const Transfer *t, uint64_t polled, uint64_t address,
                            const uint8_t *bytes) {
    uint64_t value = 0, at = address;
    PtxSpace space = t->space == PTX_SPACE_NONE ? access_resolve(w, &at) : t->space;
    if (space == PTX_GLOBAL && t->of_device) order_read(w, lane, at);
    memcpy(&value, bytes, t->size < 8 ? t->size : 8);
    return poll_mix(polled, address, value);
}

static Step run_ld(Warp *w, const Inst *i) {
    const Transfer *t = i->more;
    uint64_t address[LANES];
    address_lanes(w, &t->address, address);
    uint32_t active = w->active;
    bool strong = t->how & ACCESS_STRONG && w->block->order;
    uint64_t polled = (uint64_t)(uintptr_t)i;
    FOR_LANES(l, active) {
        const uint8_t *bytes = access_bytes(w, i, (int)l, t->space, address[l], t->size, t->how, NULL);
        if (!bytes) return STEP_FAULT;
        take_elements(w, t, (int)l, bytes);
        if (strong) polled = note_strong(w, (int)l, t, polled, address[l], bytes);
    }
    if (strong) order_poll(w, polled);
    count_request(w, t->space, address, t->size, false);
    if (t->fence_after) {
        if (t->of_device) order_acquire(w, false);
        clock_fence(w);
    }
    return STEP_NEXT;
}

static Step run_st(Warp *w, const Inst *i) {
    const Transfer *t = i->more;
    uint64_t address[LANES];
    address_lanes(w, &t->address, address);
    uint32_t active = w->active;
    if (t->fence_before) {
        if (t->of_device) order_release(w, false);
        clock_fence(w);
    }
    FOR_LANES(l, active) {
        uint8_t value[MOST_BYTES];
        for (int k = 0; k < t->count; k++) {
            const uint64_t v = lane_value(w, &t->elements[k], (int)l);
            put_number(value + (uint32_t)k * t->element_size, v, t->element_size);
        }
        uint8_t *bytes = access_bytes(w, i, (int)l, t->space, address[l], t->size, t->how, value);
        if (!bytes) return STEP_FAULT;
        copy_few(bytes, value, t->size);
    }
    count_request(w, t->space, address, t->size, true);
    return STEP_NEXT;
}

/* A parameter of the kernel at a fixed place: the same for all lanes. */
static Step run_ld_kernel_param(Warp *w, const Inst *i) {
    const Transfer *t = i->more;
    const uint8_t *bytes = (const uint8_t *)w->block->launch->params + t->address.offset;
    for (int k = 0; k < t->count; k++) {
        const uint64_t v = extend(t, few_as_number(bytes + (uint32_t)k * t->element_size, t->element_size));
        if (t->used[k]) FOR_LANES(l, w->active) set_lane(w, &t->elements[k], (int)l, v);
    }
    return STEP_NEXT;
}

/* ---- decoding ---- */

static const char *const known[] = {"weak",
                                    "volatile",
                                    "relaxed",
                                    "acquire",
                                    "release",
                                    "mmio",
                                    "cta",
                                    "cluster",
                                    "gpu",
                                    "sys",
                                    "ca",
                                    "cg",
                                    "cs",
                                    "lu",
                                    "cv",
                                    "wb",
                                    "wt",
                                    "nc",
                                    "v2",
                                    "v4",
                                    "v8",
                                    "param",
                                    "param::entry",
                                    "param::func",
                                    "global",
                                    "shared",
                                    "shared::cta",
                                    "local",
                                    "const",
                                    "L1::evict_normal",
                                    "L1::evict_unchanged",
                                    "L1::evict_first",
                                    "L1::evict_last",
                                    "L1::no_allocate",
                                    "L2::evict_normal",
                                    "L2::evict_first",
                                    "L2::evict_last",
                                    "L2::cache_hint",
                                    "L2::64B",
                                    "L2::128B",
                                    "L2::256B",
                                    "unified",
                                    NULL};

static bool decode_transfer(Decoder *d, Inst *i, const PtxOperand *value, const PtxOperand *address, bool load) {
    Transfer *t = module_new(d->function->module, sizeof *t);
    i->more = t;
    if (!only_modifiers(d, known)) return false;
    if (d->ptx->type_count != 1) return refuse(d, "it has one type");
    PtxType type = d->ptx->types[0];
    t->element_size = (uint32_t)ptx_type_bytes(type);
    t->is_signed = type == PTX_S8 || type == PTX_S16 || type == PTX_S32;
    if (t->element_size < 1 || t->element_size > 8) return refuse(d, "not supported");
    t->count = ptx_has(d->ptx, "v2") ? 2 : ptx_has(d->ptx, "v4") ? 4 : ptx_has(d->ptx, "v8") ? 8 : 1;
    t->size = t->element_size * (uint32_t)t->count;
    if (t->size > MOST_BYTES || (t->size > 16 && d->function->module->context.arch < 100))
        return refuse(d, "vectors have 16 bytes at most");
    t->space = modifier_space(d);
    t->how = load ? ACCESS_READ : ACCESS_WRITE;
    if (ptx_has(d->ptx, "nc")) t->how |= ACCESS_CONSTANT;
    static const char *const strong[] = {"volatile", "relaxed", "acquire", "release", "mmio", NULL};
    if (one_modifier(d, strong)) t->how |= ACCESS_STRONG;
    t->fence_after = ptx_has(d->ptx, "acquire");
    t->fence_before = ptx_has(d->ptx, "release");
    t->of_device = !ptx_has(d->ptx, "cta") && !ptx_has(d->ptx, "cluster");
    if (!t->of_device) t->how |= ACCESS_CTA;
    bool global = t->space == PTX_GLOBAL || t->space == PTX_SPACE_NONE;
    d->function->orders |= t->how & ACCESS_STRONG && t->of_device && global;
    bool vector = value->kind == PTX_OP_VECTOR;
    if ((t->count > 1) != vector || (vector && value->count != t->count))
        return refuse(d, "a vector of %d elements is needed", t->count);
    for (int k = 0; k < t->count; k++) {
        const PtxOperand *o = vector ? &value->items[k] : value;
        t->used[k] = o->kind != PTX_OP_SINK;
        if (!t->used[k] && load) continue;
        bool is_register = o->kind == PTX_OP_REGISTER;
        int bytes = is_register ? 0 : t->element_size == 8 ? 8 : 4;
        if (!(load ? decode_result : decode_source)(d, o, bytes, &t->elements[k])) return false;
        if (is_register && t->elements[k].width < 8 * t->element_size)
            return refuse(d, "the register has %d bits", t->elements[k].width);
    }
    return decode_address(d, address, &t->address);
}

bool decode_ld(Decoder *d, Inst *i) {
    if (d->ptx->operand_count < 2 || d->ptx->operand_count > 3) return refuse(d, "a wrong number of operands");
    i->run = run_ld;
    if (!decode_transfer(d, i, &d->ptx->operands[0], &d->ptx->operands[1], true)) return false;
    const Transfer *t = i->more;
    const PtxFunction *f = d->function->ptx;
    uint64_t offset = (uint64_t)t->address.offset;
    if (t->space == PTX_PARAM && f->is_entry && !t->address.base.bytes && offset + t->size <= f->param_bytes &&
        offset % t->size == 0)
        i->run = run_ld_kernel_param;
    return true;
}

bool decode_st(Decoder *d, Inst *i) {
    if (d->ptx->operand_count < 2 || d->ptx->operand_count > 3) return refuse(d, "a wrong number of operands");
    i->run = run_st;
    return decode_transfer(d, i, &d->ptx->operands[1], &d->ptx->operands[0], false);
}
