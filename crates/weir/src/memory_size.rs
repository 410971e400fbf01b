//! The memory that the program may use by default: a share of the machine's, or of its control group's if that has a limit.

use std::fs;
use std::path::{Path, PathBuf};

/// The share of the memory that the program may use, in percent. Chosen by judgement: the rest is for the system's caches,
/// and for what the allocator cannot reuse.
const SHARE_PERCENT: u64 = 80;

/// Returns the memory in bytes; `None` if the system does not say how much it has.
pub(crate) fn default_bytes() -> Option<u64> {
    let limits = groups().into_iter().filter_map(|file| group_limit(&file));
    let smallest = limits.chain(machine_bytes(&fs::read_to_string("/proc/meminfo").ok()?)).min()?;
    Some(smallest / 100 * SHARE_PERCENT)
}

/// Returns the files with the limits of the control groups that this process is in.
fn groups() -> Vec<PathBuf> {
    let mut files = vec![PathBuf::from("/sys/fs/cgroup/memory/memory.limit_in_bytes")];
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    // Version 2 has one line, `0::/path`. The limit of each group on the path applies.
    let path = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or("");
    files.extend(Path::new("/sys/fs/cgroup").join(path).ancestors().map(|folder| folder.join("memory.max")));
    files.retain(|file| file.starts_with("/sys/fs/cgroup"));
    files
}

/// Reads a limit: a number of bytes, or `max`.
fn group_limit(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Returns the memory of the machine in bytes, from the text of `/proc/meminfo`.
fn machine_bytes(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_the_machine_is_a_line_of_meminfo() {
        let text = "MemTotal:       16303428 kB\nMemFree:         1024 kB\n";
        assert_eq!(machine_bytes(text), Some(16_303_428 * 1024));
        assert_eq!(machine_bytes("MemFree: 1024 kB\n"), None);
    }

    #[test]
    fn the_default_is_less_than_the_machine_has() {
        let machine = machine_bytes(&fs::read_to_string("/proc/meminfo").unwrap()).unwrap();
        assert!((1..machine).contains(&default_bytes().unwrap()));
    }
}
