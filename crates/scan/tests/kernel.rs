//! The scanner on real source: Debian's linux-source-6.1, of which the needed folders are unpacked once
//! below the target directory.
//!
//! One test, because all parts share the unpacked tree and some edit it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use raddle_scan::{Level, Options, Report};

const ARCHIVE: &str = "/usr/src/linux-source-6.1.tar.xz";

/// Folders of the sample for parse quality.
const SAMPLE: &[&str] = &[
    "fs/ext4",
    "fs/fscache",
    "net/bluetooth",
    "net/nfc",
    "kernel/sched",
    "mm",
];

/// Further folders that the undone fixes need.
const FURTHER: &[&str] = &[
    "include",
    "drivers/media/usb/dvb-usb-v2",
    "drivers/gpu/drm/bridge/cadence",
    "drivers/nfc/nfcmrvl",
    "security/keys",
    "net/wireless",
];

/// A fix of a real bug, to be undone.
struct Fix {
    /// Subject of the commit that fixed it.
    subject: &'static str,
    pattern: &'static str,
    function: &'static str,
    scan: &'static [&'static str],
    file: &'static str,
    fixed: &'static str,
    buggy: &'static str,
}

const FIXES: &[Fix] = &[
    Fix {
        subject: "Bluetooth: Fix atomicity violation in {min,max}_key_size_set",
        pattern: "misused-test-and-set",
        function: "min_key_size_set",
        scan: &["net/bluetooth/hci_debugfs.c"],
        file: "net/bluetooth/hci_debugfs.c",
        fixed: "\thci_dev_lock(hdev);\n\tif (val > hdev->le_max_key_size || val < SMP_MIN_ENC_KEY_SIZE) {\n\t\thci_dev_unlock(hdev);\n\t\treturn -EINVAL;\n\t}\n\n",
        buggy: "\tif (val > hdev->le_max_key_size || val < SMP_MIN_ENC_KEY_SIZE)\n\t\treturn -EINVAL;\n\n\thci_dev_lock(hdev);\n",
    },
    Fix {
        subject: "Bluetooth: Fix TOCTOU in HCI debugfs implementation",
        pattern: "misused-test-and-set",
        function: "conn_info_min_age_set",
        scan: &["net/bluetooth/hci_debugfs.c"],
        file: "net/bluetooth/hci_debugfs.c",
        fixed: "\thci_dev_lock(hdev);\n\tif (val == 0 || val > hdev->conn_info_max_age) {\n\t\thci_dev_unlock(hdev);\n\t\treturn -EINVAL;\n\t}\n\n",
        buggy: "\tif (val == 0 || val > hdev->conn_info_max_age)\n\t\treturn -EINVAL;\n\n\thci_dev_lock(hdev);\n",
    },
    Fix {
        subject: "media: dvb-usb-v2: af9035: fix missing unlock",
        pattern: "lock-leak",
        function: "af9035_i2c_master_xfer",
        scan: &["drivers/media/usb/dvb-usb-v2/af9035.c"],
        file: "drivers/media/usb/dvb-usb-v2/af9035.c",
        fixed: "\t\t\tif (msg[0].len < 3 || msg[1].len < 1) {\n\t\t\t\tret = -EOPNOTSUPP;\n\t\t\t\tgoto unlock;\n\t\t\t}",
        buggy: "\t\t\tif (msg[0].len < 3 || msg[1].len < 1)\n\t\t\t\treturn -EOPNOTSUPP;",
    },
    Fix {
        subject: "drm: bridge: cdns-mhdp8546: Fix missing mutex unlock on error path",
        pattern: "lock-leak",
        function: "cdns_mhdp_atomic_check",
        scan: &["drivers/gpu/drm/bridge/cadence"],
        file: "drivers/gpu/drm/bridge/cadence/cdns-mhdp8546-core.c",
        fixed: "\t\t\tmhdp->link.rate / 100);\n\t\tmutex_unlock(&mhdp->link_mutex);\n",
        buggy: "\t\t\tmhdp->link.rate / 100);\n",
    },
    Fix {
        subject: "fscache: Use clear_and_wake_up_bit() in fscache_create_volume_work()",
        pattern: "missing-barrier",
        function: "fscache_create_volume_work",
        scan: &["fs/fscache"],
        file: "fs/fscache/volume.c",
        fixed: "_volume_end);\n\n\tclear_and_wake_up_bit(FSCACHE_VOLUME_CREATING, &volume->flags);",
        buggy: "_volume_end);\n\n\tclear_bit_unlock(FSCACHE_VOLUME_CREATING, &volume->flags);\n\twake_up_bit(&volume->flags, FSCACHE_VOLUME_CREATING);",
    },
    Fix {
        subject: "keys: fix lost wakeup when reaping a dead key type",
        pattern: "missing-barrier",
        function: "key_garbage_collector",
        scan: &["security/keys/gc.c"],
        file: "security/keys/gc.c",
        fixed: "\t\tclear_and_wake_up_bit(KEY_GC_REAPING_KEYTYPE, &key_gc_flags);",
        buggy: "\t\tsmp_mb();\n\t\tclear_bit(KEY_GC_REAPING_KEYTYPE, &key_gc_flags);\n\t\twake_up_bit(&key_gc_flags, KEY_GC_REAPING_KEYTYPE);",
    },
    Fix {
        subject: "NFC: netlink: fix sleep in atomic bug when firmware download timeout",
        pattern: "sleep-in-atomic",
        function: "fw_dnld_timeout",
        scan: &["net/nfc", "drivers/nfc/nfcmrvl"],
        file: "net/nfc/netlink.c",
        fixed: "u32 result)\n{\n\tstruct sk_buff *msg;\n\tvoid *hdr;\n\n\tmsg = nlmsg_new(NLMSG_DEFAULT_SIZE, GFP_ATOMIC);",
        buggy: "u32 result)\n{\n\tstruct sk_buff *msg;\n\tvoid *hdr;\n\n\tmsg = nlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);",
    },
];

#[test]
fn real_source() {
    let tree = unpack();
    let mut failures = Vec::new();
    parse_quality(&tree, &mut failures);
    known_bugs(&tree, &mut failures);
    for fix in FIXES {
        undo(&tree, fix, &mut failures);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn unpack() -> PathBuf {
    let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let tree = base.join("linux-source-6.1");
    let done = base.join(format!("linux-source-6.1.{}", SAMPLE.len() + FURTHER.len()));
    if done.exists() && FIXES.iter().all(|fix| read(&tree, fix).contains(fix.fixed)) {
        return tree;
    }
    assert!(
        Path::new(ARCHIVE).exists(),
        "{ARCHIVE} is missing: `cargo xtask setup` installs the Debian package linux-source-6.1"
    );
    let members = SAMPLE
        .iter()
        .chain(FURTHER)
        .map(|folder| format!("linux-source-6.1/{folder}"));
    let status = Command::new("tar")
        .args(["xf", ARCHIVE, "-C"])
        .arg(base)
        .args(members)
        .status()
        .expect("tar starts");
    assert!(status.success(), "tar could not unpack {ARCHIVE}");
    fs::write(done, "").expect("the target directory can be written");
    tree
}

fn read(tree: &Path, fix: &Fix) -> String {
    fs::read_to_string(tree.join(fix.file)).unwrap_or_default()
}

fn scan(tree: &Path, paths: &[&str], only: &[&str]) -> Report {
    let options = Options {
        paths: paths.iter().map(|path| tree.join(path)).collect(),
        patterns: raddle_scan::shipped_files(),
        only: only.iter().map(|name| (*name).to_owned()).collect(),
        jobs: 2,
        level: Level::FULL,
        limit: None,
        config: raddle_config::scan::Scan::default(),
        changed: None,
    };
    raddle_scan::scan(&options, &|_, _, _| {}).expect("a scan of real source works")
}

/// At most 0.7 % of functions may be lost or damaged.
fn parse_quality(tree: &Path, failures: &mut Vec<String>) {
    let summary = scan(tree, SAMPLE, &["missing-barrier"]).summary;
    let bad = summary.functions_damaged + summary.functions_lost;
    if summary.functions < 9_000 {
        failures.push(format!("only {} functions were found", summary.functions));
    }
    if bad * 1000 > summary.functions * 7 {
        failures.push(format!(
            "{bad} of {} functions were not understood",
            summary.functions
        ));
    }
}

/// Bugs that are in the shipped source.
fn known_bugs(tree: &Path, failures: &mut Vec<String>) {
    for (path, pattern, function) in [
        (
            "net/wireless/wext-sme.c",
            "lock-leak",
            "cfg80211_wext_siwgenie",
        ),
        (
            "net/bluetooth/l2cap_core.c",
            "lock-leak",
            "l2cap_le_connect_rsp",
        ),
    ] {
        if count(&scan(tree, &[path], &[pattern]), pattern, function) == 0 {
            failures.push(format!("{pattern} in {function} was not found"));
        }
    }
}

fn undo(tree: &Path, fix: &Fix, failures: &mut Vec<String>) {
    let text = read(tree, fix);
    if text.matches(fix.fixed).count() != 1 {
        failures.push(format!(
            "{}: the fixed text is not in {}",
            fix.subject, fix.file
        ));
        return;
    }
    let path = tree.join(fix.file);
    let clean = count(
        &scan(tree, fix.scan, &[fix.pattern]),
        fix.pattern,
        fix.function,
    );
    fs::write(&path, text.replace(fix.fixed, fix.buggy)).expect("the copy can be edited");
    let buggy = count(
        &scan(tree, fix.scan, &[fix.pattern]),
        fix.pattern,
        fix.function,
    );
    fs::write(&path, text).expect("the copy can be restored");
    if buggy == 0 {
        failures.push(format!("{}: undone, but not found", fix.subject));
    }
    if clean > 0 {
        failures.push(format!(
            "{}: still reported in the fixed source",
            fix.subject
        ));
    }
}

fn count(report: &Report, pattern: &str, function: &str) -> usize {
    report
        .findings
        .iter()
        .filter(|finding| finding.kind == pattern && finding.steps[0].place.function == function)
        .count()
}
