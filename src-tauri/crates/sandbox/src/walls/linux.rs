//! The walls on Linux: limits of resources, landlock for files, seccomp for everything else.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use landlock::{
    path_beneath_rules, Access, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, ABI,
};
use rustix::process::{setrlimit, Resource, Rlimit};
use rustix::time::{clock_gettime, ClockId};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use super::MEMORY;

/// The processors that work may keep busy: its processor time is this many times its time.
const PROCESSORS: u64 = 2;

/// The same program, also after an update has replaced its file.
pub(crate) fn command() -> io::Result<Command> {
    Ok(Command::new("/proc/self/exe"))
}

/// The memory that a process has, in bytes. The limit of it is the system's.
pub(crate) fn memory(child: &Child) -> u64 {
    let sizes = fs::read_to_string(format!("/proc/{}/statm", child.id())).ok();
    let pages: Option<u64> = sizes.and_then(|sizes| sizes.split(' ').nth(1)?.parse().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

/// Limits the processor time from now on, for the case that nobody is left to kill the process.
pub(crate) fn allow(time: Duration) {
    let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec.unsigned_abs();
    limit(Resource::Cpu, used + PROCESSORS * time.as_secs() + 1, None);
}

/// Puts all walls up. Returns the names of those that this kernel lacks.
pub(crate) fn raise() -> Vec<String> {
    let mapped = fs::read_to_string("/proc/self/statm").ok();
    let pages: Option<u64> = mapped.and_then(|sizes| sizes.split(' ').next()?.parse().ok());
    let mapped = pages.unwrap_or(0) * rustix::param::page_size() as u64;
    limit(Resource::As, mapped + MEMORY, Some(mapped + MEMORY));
    limit(Resource::Core, 0, Some(0));
    limit(Resource::Fsize, 0, Some(0));
    let files = matches!(
        confine_files(),
        Ok(RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced)
    );
    // Without the first wall, the second one opens no file at all.
    let calls = filter_calls(files).is_ok();
    let missing = [("landlock", files), ("seccomp", calls)].into_iter();
    missing.filter(|(_, up)| !up).map(|(name, _)| name.to_owned()).collect()
}

fn limit(resource: Resource, current: u64, maximum: Option<u64>) {
    let limit = Rlimit {
        current: Some(current),
        maximum,
    };
    // A stricter limit of the user's stays.
    let _ = setrlimit(resource, limit);
}

/// Leaves fonts to be read, for the texts in drawings.
fn confine_files() -> Result<RulesetStatus, RulesetError> {
    let access = AccessFs::from_all(ABI::V5);
    let ruleset = Ruleset::default().handle_access(access)?.create()?;
    let rules = path_beneath_rules(fonts(), AccessFs::from_read(ABI::V5) & !AccessFs::Execute);
    Ok(ruleset.add_rules(rules)?.restrict_self()?.ruleset)
}

fn fonts() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = ["/etc/fonts", "/usr/share/fonts", "/usr/local/share/fonts"]
        .map(PathBuf::from)
        .into();
    if let Some(home) = std::env::var_os("HOME").map(PathBuf::from) {
        folders.extend([home.join(".fonts"), home.join(".local/share/fonts")]);
    }
    folders.retain(|folder| folder.is_dir());
    folders
}

/// Allows what memory, threads, clocks, pipes and, with landlock, files to read need. Everything else fails.
fn filter_calls(files: bool) -> Result<(), seccompiler::Error> {
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let denied = SeccompAction::Errno(libc::EPERM as u32);
    // The C library falls back to `clone`, whose flags a filter can read.
    let no_clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let missing = SeccompAction::Errno(libc::ENOSYS as u32);
    install(SeccompFilter::new(no_clone3, SeccompAction::Allow, missing, arch)?)?;
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = CALLS.iter().map(|call| (*call, Vec::new())).collect();
    rules.extend(
        files
            .then_some(FILE_CALLS)
            .into_iter()
            .flatten()
            .map(|call| (call, Vec::new())),
    );
    let thread = libc::CLONE_THREAD as u64;
    let is_thread = SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(thread), thread)?;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![is_thread])?]);
    install(SeccompFilter::new(rules, denied, SeccompAction::Allow, arch)?)
}

fn install(filter: SeccompFilter) -> Result<(), seccompiler::Error> {
    let program: BpfProgram = filter.try_into()?;
    seccompiler::apply_filter_all_threads(&program)
}

/// System calls of the work itself.
const CALLS: &[i64] = &[
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_clone3,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_gettid,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_ppoll,
    libc::SYS_prctl,
    libc::SYS_prlimit64,
    libc::SYS_read,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_sigaltstack,
    libc::SYS_sysinfo,
    libc::SYS_tgkill,
    libc::SYS_write,
    libc::SYS_writev,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
];

/// System calls that open and read files, which landlock confines.
const FILE_CALLS: [i64; 7] = [
    libc::SYS_getdents64,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_pread64,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_statx,
];
