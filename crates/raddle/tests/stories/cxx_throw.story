finding 1 of 2: assertion failed: terminate called after throwing an instance of 'std::runtime_error' what():  no limit was set

  (1) thread 2 reads `limit` = 0  cxx_throw.cpp:8  worker  no locks
  (2) thread 2 gives up           cxx_throw.cpp:9  worker  no locks
      in this order thread 2 gives up at cxx_throw.cpp:9 worker

  cxx_throw.cpp
    8 │     if (limit == 0) {  ◀ (1)
    9 │         throw std::runtime_error("no limit was set");  ◀ (2)

  thread 2 reads `limit` before thread 1 (main) writes it at cxx_throw.cpp:15 main; in the run that goes well
    it comes after that
  confirmed (error), object `limit`

finding 2 of 2: data race on `limit` between cxx_throw.cpp:15 main and cxx_throw.cpp:8 worker

  (1) thread 1 (main) writes `limit`  cxx_throw.cpp:15  main   no locks
  (2) thread 2 reads `limit`          cxx_throw.cpp:8  worker  no locks
      no lock, creation, join or atomic operation orders these two accesses

  cxx_throw.cpp
    8 │     if (limit == 0) {  ◀ (2)
   15 │     limit = 10;  ◀ (1)

  confirmed (warning), object `limit`

