//! Host functions of the program `main.weir`: batched reads of the store, a write, and pure functions.

use std::cmp::Reverse;

use weir::Failure;

use crate::store::{Post, Store};

weir::library! {
    /// The posts of a blog.
    pub(crate) blog: ids, info, content, add, seen, newest, most_viewed, topics
}

/// A post without its content.
#[derive(Clone, Debug, weir::Type)]
#[weir(name = "blog.Info")]
pub(crate) struct Info {
    /// The identity of the post.
    pub(crate) id: i64,
    /// The heading.
    pub(crate) title: String,
    /// The topic.
    pub(crate) topic: String,
    /// Number of views.
    pub(crate) views: i64,
}

/// Returns the identities of all posts, the oldest first.
#[weir::function(reads)]
pub(crate) fn ids(#[environment] store: &Store) -> Vec<i64> {
    (0i64..).zip(store.read().iter()).map(|(id, _)| id).collect()
}

/// Returns a post without its content.
#[weir::batched(at_most = 500, reads)]
pub(crate) async fn info(ids: &[i64], #[environment] store: &Store) -> Vec<Result<Info, Failure>> {
    let posts = store.read();
    let info = |id: &i64| {
        let Post { title, topic, views, .. } = find(&posts, *id)?;
        Ok(Info { id: *id, title: title.clone(), topic: topic.clone(), views: *views })
    };
    ids.iter().map(info).collect()
}

/// Returns the content of a post.
#[weir::batched(at_most = 100, reads)]
pub(crate) async fn content(ids: &[i64], #[environment] store: &Store) -> Vec<Result<String, Failure>> {
    let posts = store.read();
    ids.iter().map(|id| Ok(find(&posts, *id)?.content.clone())).collect()
}

fn find(posts: &[Post], id: i64) -> Result<&Post, Failure> {
    let found = usize::try_from(id).ok().and_then(|at| posts.get(at));
    found.ok_or_else(|| Failure::function(format!("there is no post {id}")))
}

/// Adds a post, and returns its identity.
#[weir::function]
pub(crate) fn add(title: String, topic: String, content: String, #[environment] store: &Store) -> i64 {
    let mut posts = store.write();
    posts.push(Post { title, topic, content, views: 0 });
    i64::try_from(posts.len() - 1).expect("a vector has fewer elements than an i64 counts")
}

/// Counts a view of a post. The response need not wait for this.
#[weir::function(deferrable)]
pub(crate) fn seen(id: i64, #[environment] store: &Store) {
    let mut posts = store.write();
    if let Some(post) = usize::try_from(id).ok().and_then(|at| posts.get_mut(at)) {
        post.views += 1;
    }
}

/// Returns the last `count` of these posts, the newest first.
#[weir::function(pure)]
pub(crate) fn newest(posts: Vec<Info>, count: u16) -> Vec<Info> {
    posts.into_iter().rev().take(count.into()).collect()
}

/// Returns the `count` posts with the most views.
#[weir::function(pure)]
pub(crate) fn most_viewed(mut posts: Vec<Info>, count: u16) -> Vec<Info> {
    posts.sort_by_key(|post| Reverse(post.views));
    posts.truncate(count.into());
    posts
}

/// Returns the topics in alphabetical order, each with its number of posts.
#[weir::function(pure)]
pub(crate) fn topics(posts: Vec<Info>) -> Vec<(String, i64)> {
    let mut names: Vec<String> = posts.into_iter().map(|post| post.topic).collect();
    names.sort();
    let groups = names.chunk_by(|one, other| one == other);
    groups.map(|group| (group[0].clone(), i64::try_from(group.len()).unwrap_or(i64::MAX))).collect()
}
