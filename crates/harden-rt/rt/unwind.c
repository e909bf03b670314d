/* From a failing callee back into a caller that was prepared for it: the call there is an `invoke` whose landing pad
   names raddle_harden_marker in its exception table. The frames are read with the unwinder of libgcc, but no
   personality routine takes part: the registers of the chosen frame are installed and its pad is entered directly, so
   that a frame without our pad at this very call ends the attempt before anything has been changed. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <unwind.h>

/* Frames between this code and the deepest caller that may be prepared: ours, the failing function, three callers. */
#define CALLERS_MAX 8
#define OWN_FRAMES 4

/* What an exception table says of a call: re-execute from its pad; or this caller did nothing that counts before the
   call, look at its own caller. A table that says neither ends the search. In C++ the marks must be types, because its
   personality looks at them when a real exception passes; they are types that nobody throws. */
const char raddle_harden_marker[8] = "pad";
const char raddle_harden_through[8] = "through";
extern const char raddle_harden_marker_type[] __attribute__((weak)) HIDDEN;
extern const char raddle_harden_through_type[] __attribute__((weak)) HIDDEN;

enum mark { NOTHING, PAD, THROUGH };

struct search {
    struct prepared *prepared;
    uint32_t frames;
    uint32_t levels;
    /* The place of a fault, until its frame has been seen. */
    uintptr_t failing;
    int found;
};

void raddle_harden_land(const uintptr_t *registers) HIDDEN __attribute__((noreturn));

static uintptr_t leb(const uint8_t **at)
{
    uintptr_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = *(*at)++;
        value |= (uintptr_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
}

static intptr_t signed_leb(const uint8_t **at)
{
    uintptr_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = *(*at)++;
        value |= (uintptr_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    if (shift < 64 && (byte & 0x40))
        value |= -((uintptr_t)1 << shift);
    return (intptr_t)value;
}

/* A pointer in one of the encodings of the exception tables (LSB, DW_EH_PE_*). */
static uintptr_t encoded(const uint8_t **at, uint8_t encoding)
{
    const uint8_t *start = *at;
    uintptr_t value;
    switch (encoding & 0x0f) {
    case 0x00: value = *(const uintptr_t *)start; *at += 8; break;
    case 0x01: return leb(at);
    case 0x02: value = *(const uint16_t *)start; *at += 2; break;
    case 0x03: value = *(const uint32_t *)start; *at += 4; break;
    case 0x04: value = *(const uint64_t *)start; *at += 8; break;
    case 0x09: return (uintptr_t)signed_leb(at);
    case 0x0a: value = (uintptr_t)(intptr_t)*(const int16_t *)start; *at += 2; break;
    case 0x0b: value = (uintptr_t)(intptr_t)*(const int32_t *)start; *at += 4; break;
    case 0x0c: value = *(const uint64_t *)start; *at += 8; break;
    default: return 0;
    }
    if (value == 0)
        return 0;
    if ((encoding & 0x70) == 0x10)
        value += (uintptr_t)start;
    if (encoding & 0x80)
        value = *(const uintptr_t *)value;
    return value;
}

static size_t encoded_size(uint8_t encoding)
{
    switch (encoding & 0x0f) {
    case 0x02: case 0x0a: return 2;
    case 0x03: case 0x0b: return 4;
    default: return 8;
    }
}

struct table {
    const uint8_t *types;
    const uint8_t *actions;
    uint8_t type_encoding;
};

static enum mark mark_of(uintptr_t type)
{
    if (type == 0)
        return NOTHING;
    if (type == (uintptr_t)raddle_harden_marker || type == (uintptr_t)raddle_harden_marker_type)
        return PAD;
    if (type == (uintptr_t)raddle_harden_through || type == (uintptr_t)raddle_harden_through_type)
        return THROUGH;
    return NOTHING;
}

static enum mark named_mark(const struct table *table, uintptr_t action)
{
    const uint8_t *at = table->actions + action - 1;
    for (int guard = 0; guard < 64; guard++) {
        intptr_t filter = signed_leb(&at);
        const uint8_t *link = at;
        intptr_t next = signed_leb(&at);
        if (filter > 0) {
            const uint8_t *type = table->types - (size_t)filter * encoded_size(table->type_encoding);
            enum mark mark = mark_of(encoded(&type, table->type_encoding));
            if (mark != NOTHING)
                return mark;
        }
        if (next == 0)
            return NOTHING;
        at = link + next;
    }
    return NOTHING;
}

/* What the table says of the call at `ip`, and its landing pad. */
static enum mark mark_for(const uint8_t *lsda, uintptr_t function, uintptr_t ip, uintptr_t *landing)
{
    struct table table = {0};
    uintptr_t base = function;
    uint8_t encoding = *lsda++;
    if (encoding != 0xff)
        base = encoded(&lsda, encoding);
    table.type_encoding = *lsda++;
    if (table.type_encoding == 0xff)
        return NOTHING;
    uintptr_t types = leb(&lsda);
    table.types = lsda + types;
    encoding = *lsda++;
    uintptr_t length = leb(&lsda);
    const uint8_t *end = lsda + length;
    table.actions = end;
    while (lsda < end) {
        uintptr_t start = encoded(&lsda, encoding);
        uintptr_t size = encoded(&lsda, encoding);
        uintptr_t pad = encoded(&lsda, encoding);
        uintptr_t action = leb(&lsda);
        if (ip < base + start)
            return NOTHING;
        if (ip < base + start + size) {
            *landing = base + pad;
            return pad != 0 && action != 0 ? named_mark(&table, action) : NOTHING;
        }
    }
    return NOTHING;
}

static _Unwind_Reason_Code look(struct _Unwind_Context *context, void *argument)
{
    struct search *search = argument;
    static const uint8_t saved[] = {3, 6, 12, 13, 14, 15};
    if (search->failing != 0) {
        if (_Unwind_GetIP(context) == search->failing) {
            search->failing = 0;
            search->frames = OWN_FRAMES;
        }
        return _URC_NO_REASON;
    }
    search->frames++;
    /* Frame 1 is find_prepared, 2 raddle_harden_unwind, 3 its thunk, 4 the failing function, then its callers. */
    if (search->frames <= OWN_FRAMES)
        return _URC_NO_REASON;
    if (search->frames > OWN_FRAMES + search->levels)
        return _URC_END_OF_STACK;
    const uint8_t *lsda = (const uint8_t *)_Unwind_GetLanguageSpecificData(context);
    uintptr_t ip = _Unwind_GetIP(context) - 1, pad = 0;
    enum mark mark = lsda == NULL ? NOTHING : mark_for(lsda, _Unwind_GetRegionStart(context), ip, &pad);
    if (mark == THROUGH)
        return _URC_NO_REASON;
    if (mark == NOTHING)
        return _URC_END_OF_STACK;
    for (size_t i = 0; i < 6; i++)
        search->prepared->registers[i] = _Unwind_GetGR(context, saved[i]);
    search->prepared->registers[6] = _Unwind_GetCFA(context);
    search->prepared->registers[7] = pad;
    search->found = 1;
    return _URC_END_OF_STACK;
}

/* Personality of C functions whose only landing pads are ours: no exception ever stops in them. */
_Unwind_Reason_Code raddle_harden_personality(int version, _Unwind_Action actions, uint64_t exception_class,
                                              struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
    (void)version, (void)actions, (void)exception_class, (void)exception, (void)context;
    return _URC_CONTINUE_UNWIND;
}

__attribute__((noinline)) HIDDEN int find_prepared(struct prepared *prepared, uint32_t levels, uintptr_t failing)
{
    struct search search = {
        .prepared = prepared, .levels = levels < CALLERS_MAX ? levels : CALLERS_MAX, .failing = failing};
    _Unwind_Backtrace(look, &search);
    __asm__ volatile("" ::: "memory");
    return search.found;
}

/* Re-executes in a caller at most `levels` frames up, or returns and the original failure happens. */
__attribute__((noinline)) void raddle_harden_unwind(struct raddle_site *site, uint32_t levels)
{
    struct prepared prepared;
    int saved = errno;
    if (find_prepared(&prepared, levels, 0) && raddle_harden_retry(site, prepared.registers[6])) {
        errno = saved;
        raddle_harden_land(prepared.registers);
    }
    errno = saved;
}

/* For tests: whether a passing check shall fail this once, for a site that only its callers can re-execute. */
__attribute__((noinline)) uint32_t raddle_harden_inject_callers(uint32_t levels)
{
    struct prepared prepared;
    uintptr_t failing = (uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0));
    return raddle_harden_inject() && find_prepared(&prepared, levels, failing);
}
