//! Programs with OpenMP: how their threads wait.
//!
//! The runtime libraries let a thread that waits go round in a loop for a while before it sleeps, which takes hundreds of
//! thousands of turns of a schedule and decides nothing: the loop ends by itself, so it cannot be set aside. Variables
//! of the environment, which OpenMP has for this, let it sleep at once.

use std::path::PathBuf;

use raddle_explore::is_openmp_runtime;

/// Every library takes the first; that of LLVM would still wait for a while at the end of a parallel region.
const VARIABLES: &[(&str, &str)] = &[("OMP_WAIT_POLICY", "passive"), ("KMP_BLOCKTIME", "0")];

/// What the environment of a program with these files gets; nothing if no runtime library of OpenMP is among them.
pub(crate) fn environment(files: &[PathBuf]) -> &'static [(&'static str, &'static str)] {
    let mut names = files.iter().map(|file| file.to_string_lossy());
    if names.any(|name| is_openmp_runtime(&name)) {
        VARIABLES
    } else {
        &[]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_programs_with_a_runtime_library_get_variables() {
        let of = |names: &[&str]| {
            let files: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
            environment(&files)
        };
        assert_eq!(of(&["/bin/sh", "/lib/libc.so.6"]), []);
        assert_eq!(of(&["/srv/libgomp.so.1/program"]), []);
        assert_eq!(of(&["a", "/usr/lib/libgomp.so.1"]), VARIABLES);
        assert_eq!(of(&["/usr/lib/libomp.so.5"]), VARIABLES);
    }
}
