//! Reads tauri.conf.json into the program.

fn main() {
    tauri_build::build();
}
