/* Output oracles for `raddle harden`. Put `raddle_oracle(condition);` before an output: when the condition does not
   hold, a hardened program re-executes the idempotent region before this line and thereby reads shared memory anew.
   Copy what you check and print into a local variable first. In a plain build the line does nothing. */
#ifndef RADDLE_ORACLE_H
#define RADDLE_ORACLE_H

#ifdef __RADDLE_HARDEN__
#ifdef __cplusplus
extern "C"
#endif
void raddle_oracle(int holds) __attribute__((nothrow));
#else
#define raddle_oracle(holds) ((void)(holds))
#endif

#endif
