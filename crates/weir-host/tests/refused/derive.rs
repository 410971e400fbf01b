//! Types that cannot be carried over.

extern crate weir_host as weir;

#[derive(weir::Type)]
struct Wrapper<T>(T);

#[derive(weir::Type)]
#[weir(unique)]
struct NotOpaque(i64);

#[derive(weir::Type)]
#[weir(opake)]
struct Misspelt(i64);

#[derive(weir::Type)]
#[weir(name = "blog.PostId")]
struct Named(i64);

#[derive(weir::Type)]
enum Never {}

#[derive(weir::Type)]
union Both {
    one: i64,
    other: f64,
}

fn main() {}
