finding 1 of 2: assertion failed: cxx_new: cxx_new.cpp:26: int main(): Assertion `cache->misses == 2' failed.

  (1) thread 2 reads `block(cxx_new.cpp:11)+8` = 0         cxx_new.cpp:14  look_up  no locks
  (2) thread 3 reads `block(cxx_new.cpp:11)+8` = 0         cxx_new.cpp:14  look_up  no locks
  (3) thread 3 writes `block(cxx_new.cpp:11)+8` = 1        cxx_new.cpp:15  look_up  no locks
  (4) thread 2 writes `block(cxx_new.cpp:11)+8` = 1        cxx_new.cpp:15  look_up  no locks
  (5) thread 1 (main) reads `block(cxx_new.cpp:11)+8` = 1  cxx_new.cpp:26  main     no locks
  (6) thread 1 (main) gives up                             cxx_new.cpp:26  main     no locks
      in this order thread 1 (main) gives up at cxx_new.cpp:26 main

  cxx_new.cpp
   14 │     long old = cache->misses;  ◀ (1) (2)
   15 │     cache->misses = old + 1;  ◀ (3) (4)
   26 │     assert(cache->misses == 2);  ◀ (5) (6)

  thread 3 reads `block(cxx_new.cpp:11)+8` before thread 2 writes it at cxx_new.cpp:15 look_up; in the run
    that goes well it comes after that
  thread 3 was created at cxx_new.cpp:21 main
  confirmed (error), object `block(cxx_new.cpp:11)+8`

finding 2 of 2: data race on `block(cxx_new.cpp:11)+8` between cxx_new.cpp:15 look_up and cxx_new.cpp:14 look_up

  (1) thread 2 writes `block(cxx_new.cpp:11)+8`  cxx_new.cpp:15  look_up  no locks
  (2) thread 3 reads `block(cxx_new.cpp:11)+8`   cxx_new.cpp:14  look_up  no locks
      no lock, creation, join or atomic operation orders these two accesses

  cxx_new.cpp
   14 │     long old = cache->misses;  ◀ (2)
   15 │     cache->misses = old + 1;  ◀ (1)

  related: `block(cxx_new.cpp:11)+8`: writes at cxx_new.cpp:15 look_up against writes at cxx_new.cpp:15
    look_up
  confirmed (warning), object `block(cxx_new.cpp:11)+8`

