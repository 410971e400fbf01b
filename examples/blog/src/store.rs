//! In-memory store of the posts, in place of a database behind a network.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// All posts; the identity of a post is its position.
#[derive(Default)]
pub(crate) struct Store(RwLock<Vec<Post>>);

/// A post.
#[derive(Clone, Debug)]
pub(crate) struct Post {
    pub(crate) title: String,
    pub(crate) topic: String,
    pub(crate) content: String,
    pub(crate) views: i64,
}

impl Store {
    /// Returns a store with some posts to show.
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

    /// Locks the posts for reading. No call panics while it writes, so that the posts behind a poisoned lock are
    /// intact.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Vec<Post>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the posts for writing.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Vec<Post>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
