//! The posts of the blog, in memory: what would be a database behind a network elsewhere.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// All posts; an identity is a position.
#[derive(Default)]
pub(crate) struct Store(RwLock<Vec<Post>>);

/// One post.
#[derive(Clone, Debug)]
pub(crate) struct Post {
    pub(crate) title: String,
    pub(crate) topic: String,
    pub(crate) content: String,
    pub(crate) views: i64,
}

impl Store {
    /// A store that has something to show.
    pub(crate) fn with_some_posts() -> Self {
        let rows = [
            ("Dams", "water", "A weir is a small dam that measures and steers a river.", 3),
            ("Flows", "programs", "Write what happens to one request.", 12),
            ("Rivers & lakes", "water", "What flows in comes out again, later.", 7),
        ];
        let posts = rows.map(|(title, topic, content, views)| Post {
            title: title.into(),
            topic: topic.into(),
            content: content.into(),
            views,
        });
        Store(RwLock::new(posts.into()))
    }

    /// The posts, to look at. No call panics while it writes, so that a poisoned lock guards whole posts.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Vec<Post>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The posts, to change.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Vec<Post>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
