//! Constructors of private states that could not make one.

extern crate weir_host as weir;

struct State;

#[weir::function]
impl State {
    #[new]
    fn of_itself(&self) -> Self {
        State
    }
}

#[weir::function]
impl State {
    #[new]
    async fn later() -> Self {
        State
    }
}

#[weir::function]
impl State {
    #[new]
    fn nothing() {}
}

#[weir::function]
impl State {
    #[new]
    fn one() -> Self {
        State
    }
    #[new]
    fn other() -> Self {
        State
    }
}

#[weir::function]
impl State {
    #[new]
    fn changing(_count: &mut i64) -> Self {
        State
    }
}

#[weir::function]
impl State {
    #[new]
    fn surrounded(#[environment] _folder: &String) -> Self {
        State
    }
}

#[weir::function]
impl State {
    #[new]
    fn sized(_size: i64) -> Self {
        State
    }
    fn grow(&mut self, _size: i64) {}
}

#[weir::function]
impl State {
    #[new]
    fn chosen() -> Self {
        State
    }
    #[weir::function(new = State::chosen)]
    fn look(&self) {}
}

fn main() {}
