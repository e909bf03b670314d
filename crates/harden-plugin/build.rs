//! Compiles the C++ side of the plugin when the headers of LLVM 22 are here; without them the crate is empty.

use std::path::Path;

fn main() {
    println!("cargo:rustc-check-cfg=cfg(harden_llvm)");
    println!("cargo:rerun-if-changed=cpp");
    println!("cargo:rerun-if-env-changed=RADDLE_LLVM_PREFIX");
    let prefix =
        std::env::var_os("RADDLE_LLVM_PREFIX").unwrap_or_else(|| "/usr/lib/llvm-22".into());
    let include = Path::new(&prefix).join("include");
    println!("cargo:rerun-if-changed={}", include.display());
    if !include.join("llvm/Plugins/PassPlugin.h").is_file() {
        return;
    }
    println!("cargo:rustc-cfg=harden_llvm");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .files(["cpp/shim.cpp", "cpp/faults.cpp"])
        .include(&include)
        .define("_GNU_SOURCE", None)
        .define("__STDC_CONSTANT_MACROS", None)
        .define("__STDC_FORMAT_MACROS", None)
        .define("__STDC_LIMIT_MACROS", None)
        .flag("-fno-rtti")
        .flag("-fno-exceptions")
        .flag("-fvisibility-inlines-hidden")
        .flag_if_supported("-Wno-unused-parameter")
        .flag_if_supported("-Wno-comment")
        .opt_level(1)
        .debug(false)
        .pic(true)
        .warnings(false)
        .compile("raddle_harden_shim");
}
