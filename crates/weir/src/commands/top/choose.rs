//! Selection of the program to watch.

use crate::Exit;
use crate::terminal::Terminal;
use crate::trace_socket::directory::{self, SocketFile};

/// Returns the named program, or the only one that runs.
///
/// # Errors
/// Prints the running programs and a hint, and returns the exit code.
pub(super) fn choose(named: Option<&str>, terminal: &mut Terminal) -> Result<SocketFile, Exit> {
    let running = directory::folder().and_then(|folder| directory::list(&folder));
    let running = running.map_err(|error| {
        terminal.fail(Exit::Environment, &format!("cannot list the running programs: {error}"), &[])
    })?;
    let mut meant = matching(&running, named);
    match (meant.len(), named) {
        (1, _) => Ok(meant.swap_remove(0)),
        (0, None) => Err(terminal.fail(
            Exit::Environment,
            "no program is running",
            &[
                "start one with `weir run FILE`, and run `weir top` in another terminal",
                "programs of other users cannot be watched",
            ],
        )),
        (0, Some(name)) => {
            let hint = format!("running programs:\n{}", listed(&running));
            let hints: &[&str] = if running.is_empty() { &["this user runs no program"] } else { &[&hint] };
            Err(terminal.fail(Exit::Environment, &format!("no program `{name}` is running"), hints))
        }
        (count, _) => {
            let hint = format!("choose one by its process id: `weir top {}`\n{}", meant[0].pid, listed(&meant));
            Err(terminal.fail(Exit::Usage, &format!("{count} programs are running"), &[&hint]))
        }
    }
}

/// Returns the restarted program, another one of the same name; `None` for a program that was named by its process id,
/// because another process is another program then.
pub(super) fn successor(of: &SocketFile, named: Option<&str>) -> Option<SocketFile> {
    let running = directory::folder().and_then(|folder| directory::list(&folder)).ok()?;
    successor_among(running, of, named)
}

fn successor_among(running: Vec<SocketFile>, of: &SocketFile, named: Option<&str>) -> Option<SocketFile> {
    if named.is_some_and(|named| named == of.pid.to_string()) {
        return None;
    }
    running.into_iter().find(|other| other.name == of.name && other.pid != of.pid)
}

/// Finds programs by process id, else by name, else by part of the name. A number is not a part of a name: the process
/// of that id has ended.
fn matching(running: &[SocketFile], named: Option<&str>) -> Vec<SocketFile> {
    let Some(named) = named else { return running.to_vec() };
    let of = |matches: &dyn Fn(&SocketFile) -> bool| -> Vec<SocketFile> {
        running.iter().filter(|socket| matches(socket)).cloned().collect()
    };
    let found = [of(&|socket| socket.pid.to_string() == named), of(&|socket| socket.name == named)];
    let part = of(&|socket| socket.name.contains(named));
    let part = if named.parse::<u32>().is_ok() { Vec::new() } else { part };
    found.into_iter().find(|found| !found.is_empty()).unwrap_or(part)
}

fn listed(sockets: &[SocketFile]) -> String {
    let lines = sockets.iter().map(|socket| format!("    {:>8}  {}", socket.pid, socket.name));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sockets() -> Vec<SocketFile> {
        let sockets = [(7, "shop"), (8, "workshop 12"), (9, "blog"), (10, "blog")];
        sockets.map(|(pid, name)| SocketFile { pid, name: name.into(), path: "/".into() }).to_vec()
    }

    fn found(named: Option<&str>) -> Vec<u32> {
        let sockets = sockets();
        matching(&sockets, named).iter().map(|socket| socket.pid).collect()
    }

    #[test]
    fn a_program_is_named_by_its_process_its_name_or_a_part_of_it() {
        assert_eq!(found(None), [7, 8, 9, 10]);
        assert_eq!(found(Some("9")), [9]);
        assert_eq!(found(Some("shop")), [7]);
        assert_eq!(found(Some("works")), [8]);
        assert_eq!(found(Some("blog")), [9, 10]);
        assert!(found(Some("none")).is_empty());
        assert!(found(Some("12")).is_empty(), "a number is a process id");
    }

    #[test]
    fn a_restarted_program_is_followed_unless_it_was_named_by_its_process() {
        let blog = &sockets()[2];
        let followed = |named| successor_among(sockets(), blog, named).map(|socket| socket.pid);
        assert_eq!((followed(None), followed(Some("blog"))), (Some(10), Some(10)));
        assert_eq!(followed(Some("9")), None);
    }
}
