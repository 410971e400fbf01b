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
