//! Disks that are attached and taken away. inotify tells neither a mount over a folder nor the end of one that is still
//! in use elsewhere; FSEvents tells both.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod none;

#[cfg(all(target_os = "linux", test))]
pub(super) use linux::lines_near;
#[cfg(target_os = "linux")]
pub(super) use linux::Mounts;
#[cfg(not(target_os = "linux"))]
pub(super) use none::Mounts;
