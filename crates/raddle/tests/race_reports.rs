//! `--races` is silent about code that is not the user's: a shell's borrowed memory, Go's runtime.

use std::path::Path;

use raddle_testkit::{compile_text, raddle_in, run, temporary};

/// Exit status and output of a search for races.
fn races(folder: &Path, schedules: &str, program: &[&str]) -> (Option<i32>, String) {
    let options = [
        "explore",
        "--races",
        "--time",
        "120",
        "--schedules",
        schedules,
    ];
    let ran = run(raddle_in(folder, &options).arg("--").args(program));
    (ran.code, ran.stdout)
}

#[test]
fn a_pipeline_of_the_shell_has_no_race() {
    let folder = temporary();
    let script = "for i in 1 2; do /bin/echo x; done | cat";
    let (code, text) = races(folder.path(), "100", &["/bin/sh", "-c", script]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("; 0 findings"), "{text}");
}

const CORRECT: &str = r#"package main

import (
	"fmt"
	"sync"
)

func main() {
	var lock sync.Mutex
	var group sync.WaitGroup
	total := 0
	results := make(chan int, 2)
	for i := 0; i < 3; i++ {
		group.Add(1)
		go func(n int) {
			defer group.Done()
			lock.Lock()
			total += n
			lock.Unlock()
			results <- n
		}(i)
	}
	sum := 0
	for i := 0; i < 3; i++ {
		sum += <-results
	}
	group.Wait()
	fmt.Println(total, sum)
}
"#;

#[test]
fn a_correct_program_of_go_has_no_race() {
    let folder = temporary();
    compile_text(folder.path(), "correct.go", CORRECT, &[]);
    let (code, text) = races(folder.path(), "30", &["./correct"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("; 0 findings"), "{text}");
}
