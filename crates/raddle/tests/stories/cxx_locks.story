finding 1 of 1: deadlock: thread 3 and thread 2 wait for each other

  (1) thread 1 (main) writes `block(cxx_locks.cpp:40)` = 0x.. in `thread`  cxx_locks.cpp:40  main                         no locks
  (2) thread 2 locks `cache.lock._M_mutex`           cxx_locks.cpp:31  Cache::get(Registry&, int)   holds `cache.lock._M_mutex`
  (3) thread 3 locks `registry.lock._M_mutex`        cxx_locks.cpp:25  Registry::drop(Cache&, int)  holds `registry.lock._M_mutex`
  (4) thread 3 waits for `cache.lock._M_mutex`       cxx_locks.cpp:13  Cache::forget(int)           holds `registry.lock._M_mutex`
  (5) thread 2 waits for `registry.lock._M_mutex`    cxx_locks.cpp:21  Registry::load(int)          holds `cache.lock._M_mutex`
  (6) thread 1 (main) waits for the end of thread 2  cxx_locks.cpp:41  main                         no locks
      thread 3 wants `cache.lock._M_mutex`, which thread 2 holds; thread 2 wants `registry.lock._M_mutex`,
        which thread 3 holds

  cxx_locks.cpp
   13 │         std::lock_guard<std::mutex> guard(lock);  ◀ (4)
   21 │         std::lock_guard<std::mutex> guard(lock);  ◀ (5)
   25 │         std::lock_guard<std::mutex> guard(lock);  ◀ (3)
   31 │     std::lock_guard<std::mutex> guard(lock);  ◀ (2)
   40 │     std::thread owner([] { registry.drop(cache, 1); });  ◀ (1)
   41 │     user.join();  ◀ (6)

  the circle was closed by thread 2
  thread 3 was created at cxx_locks.cpp:40 main
  confirmed (error), object `cache.lock._M_mutex`

