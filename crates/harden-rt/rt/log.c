/* The log of one thread: how to undo what it did since a re-execution point. Hardened code notes at the point how long
   the log is, writes an entry before each write and after each acquisition in regions that need it, and calls
   raddle_harden_roll_back on the failing edge.

   The compiler sees to it that at most LOG_MAX entries per function (crates/harden/src/analysis/region.rs) lie between a
   point and its failing edge, in the function and at most eight callers; the ring is larger than that. Older entries are
   overwritten, since no point needs them. */
#define _GNU_SOURCE
#include "internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ENTRIES 512
/* Entries among which that of an object is looked for. */
#define LOOKED_AT 256

struct entry {
    /* What was at this address; or, if size is 0, what `value`, a function, is called with. */
    uintptr_t at;
    uint64_t value;
    /* The stack of the thread when the entry was written ended here. */
    uintptr_t stack;
    uint64_t size;
};

__thread uint64_t raddle_harden_log_position;
HIDDEN __thread int log_is_broken;
static __thread struct entry *entries;
static pthread_key_t key;

static void drop(void *memory)
{
    munmap(memory, ENTRIES * sizeof(struct entry));
    entries = NULL;
}

__attribute__((constructor(102))) static void start(void)
{
    if (pthread_key_create(&key, drop) != 0)
        abort();
}

static struct entry *next(void)
{
    if (entries == NULL) {
        void *memory = mmap(NULL, ENTRIES * sizeof(struct entry), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) {
            /* Without a log nothing can be undone: this thread never re-executes again. */
            log_is_broken = 1;
            return NULL;
        }
        entries = memory;
        pthread_setspecific(key, memory);
    }
    return &entries[raddle_harden_log_position++ % ENTRIES];
}

void raddle_harden_log_bytes(const void *at, uint64_t size)
{
    uintptr_t stack = (uintptr_t)__builtin_dwarf_cfa();
    for (uint64_t done = 0; done < size; done += 8) {
        struct entry *entry = next();
        if (entry == NULL)
            return;
        entry->at = (uintptr_t)at + done;
        entry->stack = stack;
        entry->size = size - done < 8 ? size - done : 8;
        memcpy(&entry->value, (const char *)at + done, entry->size);
    }
}

/* `object` was taken, or NULL if not; `undo` gives it back. */
void raddle_harden_log_undo(void *object, void (*undo)(void *))
{
    if (object == NULL)
        return;
    struct entry *entry = next();
    if (entry == NULL)
        return;
    entry->at = (uintptr_t)object;
    entry->value = (uint64_t)(uintptr_t)undo;
    entry->stack = (uintptr_t)__builtin_dwarf_cfa();
    entry->size = 0;
}

/* The program itself gives `object` back: its entry, one of the latest, is taken out. Points that were passed since then
   lie inside a section that ends here, so no region that begins at one of them goes on, and no length noted there is used
   again. */
void raddle_harden_log_drop(const void *object)
{
    if (entries == NULL || object == NULL)
        return;
    uint64_t end = raddle_harden_log_position;
    for (uint64_t back = 1; back <= LOOKED_AT && back <= end; back++) {
        struct entry *entry = &entries[(end - back) % ENTRIES];
        if (entry->size != 0 || entry->at != (uintptr_t)object)
            continue;
        for (uint64_t at = end - back; at + 1 < end; at++)
            entries[at % ENTRIES] = entries[(at + 1) % ENTRIES];
        raddle_harden_log_position--;
        return;
    }
}

/* Undoes, latest first, what was logged since the log had this length. What lay in frames that are gone stays: entries
   between the end of the stack then and the frame of our caller. */
void raddle_harden_roll_back(uint64_t length)
{
    uintptr_t live = (uintptr_t)__builtin_dwarf_cfa();
    if (raddle_harden_log_position > length && raddle_harden_log_position - length > ENTRIES) {
        LINE(line, LINE_BYTES);
        line_text(&line, "raddle-harden: internal error: the log is too short; the program is ended");
        line_write(&line);
        abort();
    }
    while (raddle_harden_log_position > length) {
        struct entry *entry = &entries[--raddle_harden_log_position % ENTRIES];
        if (entry->at >= entry->stack && entry->at < live)
            continue;
        if (entry->size == 0)
            ((void (*)(void *))(uintptr_t)entry->value)((void *)entry->at);
        else
            memcpy((void *)entry->at, &entry->value, entry->size);
    }
}
