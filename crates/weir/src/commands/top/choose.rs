//! Which program is watched, of those that run.

use crate::Exit;
use crate::terminal::Terminal;
use crate::trace_socket::place::{self, Place};

/// The program that is meant: the named one, or the only one.
///
/// # Errors
/// Says what runs and what to do, and gives the exit code.
pub(super) fn choose(named: Option<&str>, terminal: &mut Terminal) -> Result<Place, Exit> {
    let running = place::folder().and_then(|folder| place::list(&folder));
    let running =
        running.map_err(|error| terminal.fail(Exit::Surroundings, &format!("cannot see what runs: {error}"), &[]))?;
    let mut meant = matching(&running, named);
    match (meant.len(), named) {
        (1, _) => Ok(meant.swap_remove(0)),
        (0, None) => Err(terminal.fail(
            Exit::Surroundings,
            "no program runs",
            &[
                "`weir run FILE` runs one, and `weir top` in another terminal watches it",
                "the programs of other users are theirs to watch",
            ],
        )),
        (0, Some(name)) => {
            let hint = format!("these run:\n{}", listed(&running));
            let hints: &[&str] = if running.is_empty() { &["no program of this user runs"] } else { &[&hint] };
            Err(terminal.fail(Exit::Surroundings, &format!("no program `{name}` runs"), hints))
        }
        (count, _) => {
            let hint = format!("say which, by its number: `weir top {}`\n{}", meant[0].pid, listed(&meant));
            Err(terminal.fail(Exit::Usage, &format!("{count} programs run"), &[&hint]))
        }
    }
}

/// A program of this name that runs now, but not this one.
pub(super) fn successor(of: &Place) -> Option<Place> {
    let running = place::folder().and_then(|folder| place::list(&folder)).ok()?;
    running.into_iter().find(|other| other.name == of.name && other.pid != of.pid)
}

/// The number of a process before a name, and a whole name before a part of one.
fn matching(running: &[Place], named: Option<&str>) -> Vec<Place> {
    let Some(named) = named else { return running.to_vec() };
    let of = |matches: &dyn Fn(&Place) -> bool| -> Vec<Place> {
        running.iter().filter(|place| matches(place)).cloned().collect()
    };
    let found = [of(&|place| place.pid.to_string() == named), of(&|place| place.name == named)];
    let part = of(&|place| place.name.contains(named));
    found.into_iter().find(|found| !found.is_empty()).unwrap_or(part)
}

fn listed(places: &[Place]) -> String {
    let lines = places.iter().map(|place| format!("    {:>8}  {}", place.pid, place.name));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(named: Option<&str>) -> Vec<u32> {
        let places = [(7, "shop"), (8, "workshop"), (9, "blog"), (10, "blog")];
        let places = places.map(|(pid, name)| Place { pid, name: name.into(), path: "/".into() });
        matching(&places, named).iter().map(|place| place.pid).collect()
    }

    #[test]
    fn a_program_is_named_by_its_process_its_name_or_a_part_of_it() {
        assert_eq!(found(None), [7, 8, 9, 10]);
        assert_eq!(found(Some("9")), [9]);
        assert_eq!(found(Some("shop")), [7]);
        assert_eq!(found(Some("works")), [8]);
        assert_eq!(found(Some("blog")), [9, 10]);
        assert!(found(Some("none")).is_empty());
    }
}
