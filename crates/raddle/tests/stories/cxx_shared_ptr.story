finding 1 of 2: crash: SIGSEGV at cxx_shared_ptr.cpp:15 reader

  (1) thread 2 reads `current` = 0x..  cxx_shared_ptr.cpp:14  reader  no locks
  (2) thread 3 writes `current._M_refcount._M_pi` = 0 in `__shared_ptr::reset`  cxx_shared_ptr.cpp:20  writer  no locks
  (3) thread 2 reads `current` = 0               cxx_shared_ptr.cpp:15  reader  no locks
  (4) thread 2 crashes                           cxx_shared_ptr.cpp:15  reader  no locks
      thread 2 was killed by SIGSEGV while reading 0x.., in this order

  cxx_shared_ptr.cpp
   14 │     if (current) {  ◀ (1)
   15 │         level = current->level;  ◀ (3) (4)
   20 │     current.reset();  ◀ (2)

  3 more steps are left out; `--json` has all
  thread 3 was created at cxx_shared_ptr.cpp:25 main
  confirmed (error), object `current`

finding 2 of 2: use after free: thread 2 reads freed memory at cxx_shared_ptr.cpp:15 reader

  (1) thread 2 reads `current` = 0x..      cxx_shared_ptr.cpp:14  reader  no locks
  (2) thread 2 reads `current` = 0x..      cxx_shared_ptr.cpp:15  reader  no locks
  (3) thread 3 frees `block(cxx_shared_ptr.cpp:10)`  cxx_shared_ptr.cpp:20  writer  no locks
  (4) thread 2 reads freed memory, 16 bytes from the start of the block  cxx_shared_ptr.cpp:15  reader  no locks
      in this order thread 3 frees this block of 24 bytes before thread 2 is done with it

  cxx_shared_ptr.cpp
   14 │     if (current) {  ◀ (1)
   15 │         level = current->level;  ◀ (2) (4)
   20 │     current.reset();  ◀ (3)

  4 more steps are left out; `--json` has all
  thread 3 was created at cxx_shared_ptr.cpp:25 main
  confirmed (error), object `current._M_refcount._M_pi`

