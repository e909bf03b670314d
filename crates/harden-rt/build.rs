//! Compiles the runtime into an archive that this crate carries as bytes.
//!
//! The runtime is C and a little assembly, not Rust: it is linked into C, C++ and Rust programs alike, must not bring
//! a second standard library with it, and its retry path must not touch a vector register.

fn main() {
    println!("cargo:rerun-if-changed=rt");
    // Everything a re-execution runs through: no vector registers, so that the thunk need not save them.
    let core = cc::Build::new()
        .files(["rt/episode.c", "rt/stats.c", "rt/text.c"])
        .file("rt/thunk.S")
        .flag("-mgeneral-regs-only")
        .opt_level(2)
        .debug(false)
        .pic(true)
        .flag("-ftls-model=initial-exec")
        .flag("-fno-stack-protector")
        .flag("-fno-tree-loop-distribute-patterns")
        .std("gnu11")
        .cargo_metadata(false)
        .compile_intermediates();
    cc::Build::new()
        .files([
            "rt/cycle.c",
            "rt/fault.c",
            "rt/lock.c",
            "rt/log.c",
            "rt/setjmp.c",
            "rt/unwind.c",
        ])
        .objects(core)
        .opt_level(2)
        .debug(false)
        .pic(true)
        .flag("-ftls-model=initial-exec")
        .flag("-fexceptions")
        .std("gnu11")
        .cargo_metadata(false)
        .compile("raddle_harden_rt");
}
