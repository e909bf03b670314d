/* The paper's mechanism, only for the comparison in the benchmark: registers saved at every point, per thread. A file of its
   own, so that no other program has its thread-local variable. */
#include "internal.h"

#include <setjmp.h>

__thread jmp_buf raddle_harden_registers;

void raddle_harden_longjmp(struct raddle_site *site)
{
    if (raddle_harden_retry(site, (uintptr_t)__builtin_frame_address(0)))
        longjmp(raddle_harden_registers, 1);
}
