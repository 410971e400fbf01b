//! Files as responses.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

use std::time::Duration;

use weir_library::files::Root;
use weir_library::http::{self, Response};

/// Returns the status of the response with a file, and its body or the place to which it leads.
fn told(root: &Root, path: &str, index: &str) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    match runtime.block_on(http::file(root, path, Duration::ZERO, index)) {
        Ok(found) => shown(&found),
        Err(error) => error.to_string(),
    }
}

fn shown(found: &Response) -> String {
    let body = String::from_utf8_lossy(found.body());
    format!("{} {}", found.code().as_u16(), found.field("location").unwrap_or(&body))
}

#[test]
fn a_folder_is_served_by_its_index_file() {
    let folder = std::env::temp_dir().join(format!("weir-static-files-{}", std::process::id()));
    for (path, text) in [("index.html", "home"), ("docs/index.html", "docs"), ("a b/index.html", "a b")] {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    std::fs::create_dir(folder.join("empty")).unwrap();
    let root = Root::open(&folder).unwrap();
    for (path, found) in [
        ("", "200 home"),
        ("docs/", "200 docs"),
        ("docs/index.html", "200 docs"),
        // A browser leads relative links of the page into the folder.
        ("docs", "303 docs/"),
        ("a b", "303 a%20b/"),
        ("empty", "`empty` is not a file"),
        ("empty/", "`empty/index.html` does not exist"),
        ("none", "`none` does not exist"),
        ("../", "`../index.html` leads out of the root"),
    ] {
        assert_eq!(told(&root, path, "index.html"), found, "{path:?}");
    }
    assert_eq!(told(&root, "docs", ""), "`docs` is not a file");
    assert_eq!(told(&root, "docs/index.html", ""), "200 docs");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_belongs_to_the_program_is_no_file_whatever_link_leads_there() {
    let folder = std::env::temp_dir().join(format!("weir-private-files-{}", std::process::id()));
    let private = ["main.weir", "main.config.toml", "data.db", "a/.env", ".git/config"];
    let public = ["a/page.txt", ".well-known/security.txt"];
    for path in private.iter().chain(&public) {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "content").unwrap();
    }
    for (at, path) in private.iter().chain(&public).enumerate() {
        std::os::unix::fs::symlink(path, folder.join(format!("link{at}.txt"))).unwrap();
    }
    std::os::unix::fs::symlink(".git", folder.join("history")).unwrap();
    std::os::unix::fs::symlink("link0.txt", folder.join("again.txt")).unwrap();
    let root = Root::open(&folder).unwrap().without_private_files();
    let hidden = private.iter().map(|path| (*path).to_owned()).chain((0..5).map(|at| format!("link{at}.txt")));
    for path in hidden.chain(["history/config".to_owned(), "again.txt".to_owned()]) {
        // The second time, a file could come from a cache.
        for _ in 0..2 {
            assert_eq!(told(&root, &path, ""), format!("`{path}` does not exist"));
        }
        assert!(
            root.open_to_read(&path).is_err() && root.open_to_append(&path).is_err() && !root.exists(&path),
            "{path}"
        );
    }
    for path in public.iter().map(|path| (*path).to_owned()).chain((5..7).map(|at| format!("link{at}.txt"))) {
        assert_eq!(told(&root, &path, ""), "200 content", "{path}");
    }
    // The system does not tell the other names of a file: a hard link is judged by its own.
    for (name, found) in [("copy.txt", "200 content"), ("copy.db", "`copy.db` does not exist")] {
        std::fs::hard_link(folder.join("data.db"), folder.join(name)).unwrap();
        assert_eq!(told(&root, name, ""), found);
    }
    assert_eq!(root.list("a").unwrap(), ["page.txt"]);
    assert!(root.list("history").is_err() && root.replace("a/.env", b"other").is_err());
    assert_eq!(told(&Root::open(&folder).unwrap(), "main.config.toml", ""), "200 content");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_file_that_is_left_out_has_no_path() {
    let folder = std::env::temp_dir().join(format!("weir-left-out-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("prod.toml"), "content").unwrap();
    std::fs::write(folder.join("other.toml"), "content").unwrap();
    std::os::unix::fs::symlink("prod.toml", folder.join("link.toml")).unwrap();
    let root = Root::open(&folder).unwrap().without_file(&folder.join("link.toml"));
    for path in ["prod.toml", "link.toml"] {
        assert_eq!(told(&root, path, ""), format!("`{path}` does not exist"));
    }
    assert!(root.replace("prod.toml", b"other").is_err() && root.replace("other.toml", b"content").is_ok());
    assert_eq!(told(&root, "other.toml", ""), "200 content");
    assert_eq!(root.list(".").unwrap(), ["link.toml", "other.toml"]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_database_that_is_left_out_has_no_files() {
    let folder = std::env::temp_dir().join(format!("weir-left-out-database-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("crm.sqlite"), "content").unwrap();
    let root = Root::open(&folder).unwrap().without_database(&folder.join("crm.sqlite"));
    for end in ["", "-wal", "-shm", "-journal"] {
        let name = format!("crm.sqlite{end}");
        // The others are there at times.
        std::fs::write(folder.join(&name), "content").unwrap();
        assert_eq!(told(&root, &name, ""), format!("`{name}` does not exist"));
        assert!(root.replace(&name, b"other").is_err(), "{name}");
    }
    assert_eq!(root.list(".").unwrap(), Vec::<String>::new());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_file_is_kept_by_its_visitor_and_by_no_shared_cache() {
    let folder = std::env::temp_dir().join(format!("weir-kept-files-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("a.txt"), "content").unwrap();
    let root = Root::open(&folder).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let file = |max_age| runtime.block_on(http::file(&root, "a.txt", max_age, "")).unwrap();
    let kept = |file: &Response| file.field("cache-control").map(str::to_owned);
    assert_eq!(kept(&file(Duration::ZERO)).as_deref(), Some("no-cache"));
    assert_eq!(kept(&file(Duration::from_millis(500))).as_deref(), Some("private, max-age=1"));
    let hour = file(Duration::from_secs(3_600));
    assert_eq!(kept(&hour).as_deref(), Some("private, max-age=3600"));
    let shared = http::with_header(hour, "Cache-Control", "public, max-age=3600").unwrap();
    assert_eq!(kept(&shared).as_deref(), Some("public, max-age=3600"));
    std::fs::remove_dir_all(folder).unwrap();
}
