//! Socket folder: one private folder per user with the sockets of running programs.
//!
//! The folder is `$XDG_RUNTIME_DIR/weir`, or `weir-UID` in the folder for temporary files, with mode 0700; sockets have
//! mode 0600, so the system decides who may connect. A socket is named by process id and program,
//! `4711-image_server.sock`. Sockets of killed programs are removed by the next process that finds them.

use std::fs::{DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// File extension of sockets.
const ENDING: &str = "sock";
/// Maximum length of a program name in a socket name, in bytes; the path of a socket has at most 107.
const NAME_MAX: usize = 40;

/// A socket, described by its file name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SocketFile {
    /// Process id of the program.
    pub(crate) pid: u32,
    /// Name of the program.
    pub(crate) name: String,
    /// Path of the socket.
    pub(crate) path: PathBuf,
}

/// Returns the socket folder of this user, and creates it if necessary.
///
/// # Errors
/// Fails if the folder cannot be created, or others may access it.
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

/// Refuses a folder that belongs to another user or that others may access.
fn verify(folder: &Path) -> io::Result<()> {
    // Links are not followed: another user may have created them.
    let found = std::fs::symlink_metadata(folder)?;
    let own = found.uid() == rustix::process::getuid().as_raw();
    if found.is_dir() && own && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    let message = format!("`{}` is not a folder that only its owner, this user, may enter", folder.display());
    Err(io::Error::new(ErrorKind::PermissionDenied, message))
}

/// Binds the socket of this process, and removes an old one with the same process id.
///
/// # Errors
/// Fails if the socket cannot be bound.
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

/// Returns the sockets of running programs, sorted by process id. Removes sockets without a program.
///
/// # Errors
/// Fails if the folder cannot be read.
pub(crate) fn list(folder: &Path) -> io::Result<Vec<SocketFile>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(socket) = SocketFile::of(&path) else { continue };
        match UnixStream::connect(&path) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                // Another process may have removed it already.
                let _ = std::fs::remove_file(&path);
            }
            // The program has just ended.
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

/// Returns the name as part of a file name: without separators, and cut to the maximum length.
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
