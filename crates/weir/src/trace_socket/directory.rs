//! Where the sockets of running programs are: one folder for each user, which nobody else may enter.
//!
//! The folder is `$XDG_RUNTIME_DIR/weir`, or `weir-UID` in the folder for temporary files; its mode is 0700, and that of
//! each socket 0600: who may watch a program is whom the system lets open its socket. A socket is called after its
//! program's process and name, `4711-image_server.sock`. What a killed program left behind is removed by whoever sees it
//! next.

use std::fs::{DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// What the name of a socket ends in.
const ENDING: &str = "sock";
/// The longest name that a program is given here, in bytes: the path of a socket has 107 at most.
const NAME_MAX: usize = 40;

/// A socket, by what its file is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SocketFile {
    /// The program's process.
    pub(crate) pid: u32,
    /// The program's name.
    pub(crate) name: String,
    /// The socket.
    pub(crate) path: PathBuf,
}

/// The folder of this user's sockets, made where it is not there.
///
/// # Errors
/// Fails where it cannot be made, or others could enter it.
pub(crate) fn folder() -> io::Result<PathBuf> {
    let folder = match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute()) {
        Some(own) => own.join("weir"),
        None => std::env::temp_dir().join(format!("weir-{}", rustix::process::getuid().as_raw())),
    };
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(in_place(&folder, &error)),
        _ => {}
    }
    verify(&folder)?;
    Ok(folder)
}

/// A folder that somebody else made, or that others may enter, is not ours to put a socket into.
fn verify(folder: &Path) -> io::Result<()> {
    // Not through a link, which somebody else may have laid.
    let found = std::fs::symlink_metadata(folder)?;
    let own = found.uid() == rustix::process::getuid().as_raw();
    if found.is_dir() && own && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    let message = format!("`{}` is not a folder that only its owner, this user, may enter", folder.display());
    Err(io::Error::new(ErrorKind::PermissionDenied, message))
}

/// The socket of this process, bound; what was there before of a process with the same number is gone.
///
/// # Errors
/// Fails where it cannot be bound.
pub(crate) fn bind(folder: &Path, name: &str) -> io::Result<(UnixListener, PathBuf)> {
    let path = folder.join(format!("{}-{}.{ENDING}", std::process::id(), shortened(name)));
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(in_place(&path, &error)),
        _ => {}
    }
    let listener = UnixListener::bind(&path).map_err(|error| in_place(&path, &error))?;
    std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    Ok((listener, path))
}

/// The programs that run, in the order of their processes. Sockets that nobody serves any more are removed.
///
/// # Errors
/// Fails where the folder cannot be read.
pub(crate) fn list(folder: &Path) -> io::Result<Vec<SocketFile>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(socket) = SocketFile::of(&path) else { continue };
        match UnixStream::connect(&path) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                // Where somebody else was faster it is gone already.
                let _ = std::fs::remove_file(&path);
            }
            // One that has ended in the meantime.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            _ => found.push(socket),
        }
    }
    found.sort_by_key(|socket| socket.pid);
    Ok(found)
}

impl SocketFile {
    fn of(path: &Path) -> Option<SocketFile> {
        let stem = path.extension().filter(|ending| *ending == ENDING).and(path.file_stem())?;
        let (pid, name) = stem.to_str()?.split_once('-')?;
        Some(SocketFile { pid: pid.parse().ok()?, name: name.to_owned(), path: path.to_owned() })
    }
}

/// The name as a part of a file's: no separators, nothing hidden, not too long.
fn shortened(name: &str) -> String {
    let allowed = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-' | '.');
    let mut short = String::new();
    for character in name.chars().map(|character| if allowed(character) { character } else { '_' }) {
        if short.len() + character.len_utf8() > NAME_MAX {
            break;
        }
        short.push(character);
    }
    short
}

fn in_place(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace_socket::serve::tests::TestFolder;

    #[test]
    fn a_socket_is_called_after_process_and_program() {
        let folder = TestFolder::new("called");
        let (_listener, path) = bind(folder.path(), "image server/1").unwrap();
        let mode = std::fs::metadata(&path).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600, "only its owner may connect");
        let socket = SocketFile { pid: std::process::id(), name: "image_server_1".into(), path };
        assert_eq!(list(folder.path()).unwrap(), [socket]);
    }

    #[test]
    fn what_a_killed_program_left_behind_is_removed() {
        let folder = TestFolder::new("left");
        let (listener, path) = bind(folder.path(), "gone").unwrap();
        drop(listener);
        assert!(path.exists());
        assert_eq!(list(folder.path()).unwrap(), []);
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        let folder = TestFolder::new("open");
        assert!(verify(folder.path()).is_ok());
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o750)).unwrap();
        assert_eq!(verify(folder.path()).unwrap_err().kind(), ErrorKind::PermissionDenied);
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        assert_eq!(verify(&link).unwrap_err().kind(), ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_name_is_no_longer_than_a_file_may_be_called() {
        assert_eq!(shortened(&"é".repeat(60)).len(), NAME_MAX);
    }
}
