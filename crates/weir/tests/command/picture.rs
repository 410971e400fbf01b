//! The picture in the README is what `weir graph` draws.

use crate::support::{repository, weir};

#[test]
fn the_picture_in_the_readme_is_what_weir_draws() {
    let output = weir(&["graph", "examples/image_server/main.weir", "--format", "svg"]).output().unwrap();
    let kept = std::fs::read(repository().join("docs/image_server.svg")).unwrap();
    assert!(
        output.stdout == kept,
        "draw it again: cargo run -- graph examples/image_server/main.weir --format svg > docs/image_server.svg"
    );
}
