//! Names in a drawing: arms of switches, and values as short expressions.

use weir_host::{Resource, Type, TypeShape, Value};
use weir_ir::graph::{ArmTest, Graph, InlinedCallId, Node, NodeKind, Operand, Origin, Program};
use weir_ir::prim::Prim;
use weir_ir::program::Flow;

/// The maximum number of characters of a description, so that a drawing stays readable.
pub(crate) const LENGTH_MAX: usize = 34;
/// The maximum number of nested primitives in a description.
const DEPTH_MAX: usize = 4;

/// A graph, and the names of its parameters.
pub(crate) struct GraphScope<'a> {
    pub(crate) program: &'a Program,
    pub(crate) graph: &'a Graph,
    pub(crate) parameters: Vec<String>,
    /// The place of what the compiler generated in the graph.
    pub(crate) generated: Option<Origin>,
    /// The inlined call that the graph belongs to, if it is a body.
    pub(crate) inlined_call: Option<InlinedCallId>,
    /// True in a body that a time limit or a race may give up.
    pub(crate) may_be_given_up: bool,
}

impl<'a> GraphScope<'a> {
    /// Returns the scope of a flow.
    pub(crate) fn of_flow(program: &'a Program, flow: &'a Flow<Graph>) -> Self {
        let parameters = flow.parameters.iter().map(|parameter| parameter.name.to_string()).collect();
        GraphScope {
            program,
            graph: &flow.body,
            parameters,
            generated: None,
            inlined_call: None,
            may_be_given_up: false,
        }
    }
}

/// Returns whether a loop is a `retry`, whose state is the number of tries and the last result: what the compiler generates
/// around each try has the place of the loop.
pub(crate) fn is_retry(node: &Node) -> bool {
    let NodeKind::Loop { body, .. } = &node.kind else { return false };
    if node.origin == Origin::default() {
        return false;
    }
    let last_result = |ty: &Type| matches!(ty, Type::Option(result) if matches!(**result, Type::Result(_)));
    let states = node.outputs.iter().flat_map(|output| match output {
        Type::Tuple(parts) => parts,
        other => std::slice::from_ref(other),
    });
    states.into_iter().any(last_result) && body.nodes.iter().any(|inner| inner.origin == node.origin)
}

impl<'a> GraphScope<'a> {
    /// Returns the scopes of the bodies of `node`.
    pub(crate) fn bodies(&self, node: &'a Node) -> Vec<GraphScope<'a>> {
        let own = own_parameters(&node.kind);
        // Own inputs come first; captured values follow.
        let mut captured = node.inputs.iter().skip(node.kind.own().inputs).map(|input| self.describe(input));
        let scope = |graph: &'a Graph| {
            let count = graph.parameters.len().saturating_sub(own.len());
            let parameters = own.iter().cloned().chain(captured.by_ref().take(count)).collect();
            let generated = is_retry(node).then_some(node.origin);
            GraphScope {
                program: self.program,
                graph,
                parameters,
                generated,
                inlined_call: node.origin.inlined_call,
                may_be_given_up: self.may_be_given_up || node.cancels_bodies(),
            }
        };
        node.bodies().iter().map(scope).collect()
    }

    /// Describes a value as a short expression: `scale < 1`, `"{name}/{scale}"`.
    pub(crate) fn describe(&self, source: &Operand) -> String {
        shorten(&self.expression(source, 0))
    }

    /// Describes a call with its arguments, for a tooltip: `image.to_jpeg(image.scale, 85)`.
    pub(crate) fn call(&self, function: &str, inputs: &[Operand]) -> String {
        let arguments: Vec<String> = inputs.iter().map(|input| self.describe(input)).collect();
        format!("{function}({})", arguments.join(", "))
    }

    /// Returns the name of a switch's arm: `Some`, `err`, `true`, `otherwise`.
    pub(crate) fn arm(&self, switch: &Node, arm: u32) -> String {
        let NodeKind::Switch { arms } = &switch.kind else { return String::new() };
        let subject = switch.inputs.first().and_then(|subject| self.ty(subject));
        match arms.get(arm as usize).map(|arm| &arm.test) {
            Some(ArmTest::Tag(tag)) => self.variant(subject.as_ref(), *tag),
            Some(ArmTest::Value(value)) => constant(value),
            Some(ArmTest::Otherwise) if arms.len() == 2 && subject == Some(Type::Bool) => opposite(&arms[0].test),
            Some(ArmTest::Otherwise) | None => "otherwise".into(),
        }
    }

    /// Returns the type of a value, if the graph records it.
    pub(crate) fn ty(&self, source: &Operand) -> Option<Type> {
        match source {
            Operand::Port(node, port) => self.graph.node(*node).outputs.get(*port as usize).cloned(),
            Operand::Parameter(index) => self.graph.parameters.get(*index as usize).cloned(),
            Operand::Constant(index) => match self.graph.constants.get(*index as usize)? {
                Value::Bool(_) => Some(Type::Bool),
                _ => None,
            },
            Operand::Shared(_) | Operand::Never => None,
        }
    }

    fn variant(&self, subject: Option<&Type>, tag: u32) -> String {
        let builtin: [&str; 2] = match subject {
            Some(Type::Option(_)) => ["None", "Some"],
            Some(Type::Result(_)) => ["ok", "err"],
            _ => ["", ""],
        };
        let builtin = builtin.get(tag as usize).filter(|name| !name.is_empty()).map(|name| (*name).to_owned());
        builtin.or_else(|| self.defined_variant(subject?, tag)).unwrap_or_else(|| format!("#{tag}"))
    }

    /// Returns `.name` for a field of a record whose definition is known.
    fn field(&self, record: Option<&Operand>, index: u32) -> String {
        let Some(Type::Named(name)) = record.and_then(|record| self.ty(record)) else { return String::new() };
        let definition = self.program.types.iter().find(|definition| definition.name == name);
        match definition.map(|definition| &definition.shape) {
            Some(TypeShape::Record(fields)) => {
                fields.get(index as usize).map(|field| format!(".{}", field.name)).unwrap_or_default()
            }
            _ => String::new(),
        }
    }

    fn defined_variant(&self, subject: &Type, tag: u32) -> Option<String> {
        let Type::Named(name) = subject else { return None };
        let definition = self.program.types.iter().find(|definition| definition.name == *name)?;
        match &definition.shape {
            TypeShape::Enum(variants) => Some(variants.get(tag as usize)?.name.to_string()),
            _ => None,
        }
    }

    fn expression(&self, source: &Operand, depth: usize) -> String {
        match source {
            _ if depth > DEPTH_MAX => "…".into(),
            Operand::Port(node, _) => self.output(self.graph.node(*node), depth),
            Operand::Parameter(index) => self.parameters.get(*index as usize).cloned().unwrap_or_default(),
            Operand::Constant(index) => self.graph.constants.get(*index as usize).map(constant).unwrap_or_default(),
            Operand::Shared(name) => name.to_string(),
            Operand::Never => "never".into(),
        }
    }

    fn output(&self, node: &Node, depth: usize) -> String {
        match &node.kind {
            NodeKind::Prim(prim) => self.prim(*prim, &node.inputs, depth),
            NodeKind::Call { function, .. } => function.to_string(),
            NodeKind::Switch { .. } => {
                node.inputs.first().map(|subject| self.expression(subject, depth)).unwrap_or_default()
            }
            NodeKind::Select { switch } => self.choice(self.graph.node(*switch), node, depth),
            _ if is_retry(node) => "retry …".into(),
            kind if !kind.bodies().is_empty() => format!("{} …", kind.word()),
            // The others have no value.
            _ => String::new(),
        }
    }

    fn prim(&self, prim: Prim, inputs: &[Operand], depth: usize) -> String {
        let operand =
            |index: usize| inputs.get(index).map(|input| self.expression(input, depth + 1)).unwrap_or_default();
        match (prim, infix(prim)) {
            (_, Some(sign)) => format!("{} {sign} {}", operand(0), operand(1)),
            (Prim::Copy, _) => inputs.first().map(|input| self.expression(input, depth)).unwrap_or_default(),
            (Prim::Not, _) => format!("!{}", operand(0)),
            (Prim::Negate, _) => format!("-{}", operand(0)),
            (Prim::Interpolate, _) => self.interpolation(inputs, depth),
            (Prim::Index | Prim::DetachElement, _) => format!("{}[{}]", operand(0), operand(1)),
            (Prim::Field(index) | Prim::DetachField(index), _) => {
                format!("{}{}", operand(0), self.field(inputs.first(), index))
            }
            (Prim::IsVariant(tag), _) => {
                let subject = inputs.first().and_then(|subject| self.ty(subject));
                format!("{} is {}", operand(0), self.variant(subject.as_ref(), tag))
            }
            (Prim::Payload(_) | Prim::WithField(_), _) => operand(0),
            (Prim::Pairs, _) => format!("pairs of {}", operand(0)),
            (Prim::Flatten | Prim::Failure | Prim::Unwrap | Prim::Propagate, _) => operand(0),
            (Prim::Checked(fallible), _) => self.prim(fallible.prim(), inputs, depth),
            (Prim::Length, _) => format!("length of {}", operand(0)),
            (Prim::List, _) => format!("[{}]", if inputs.is_empty() { "" } else { "…" }),
            _ => format!("{}(…)", prim.name()),
        }
    }

    fn interpolation(&self, inputs: &[Operand], depth: usize) -> String {
        let parts = inputs.iter().map(|input| match input {
            Operand::Constant(index) => match self.graph.constants.get(*index as usize) {
                Some(Value::Text(text)) => text.to_string(),
                other => other.map(constant).unwrap_or_default(),
            },
            other => format!("{{{}}}", self.expression(other, depth + 1)),
        });
        format!("\"{}\"", parts.collect::<String>())
    }

    /// Describes `a || b` and `a && b`, which are switches with one constant arm.
    fn choice(&self, switch: &Node, select: &Node, depth: usize) -> String {
        let mut live = select.inputs.iter().filter(|input| **input != Operand::Never);
        if let (Some(only), None) = (live.next(), live.next()) {
            return self.expression(only, depth);
        }
        let (NodeKind::Switch { arms }, [first, second]) = (&switch.kind, select.inputs.as_slice()) else {
            return self.inlined_fn(select);
        };
        let Some(ArmTest::Value(Value::Bool(tested))) = arms.first().map(|arm| &arm.test) else {
            return self.inlined_fn(select);
        };
        let (when_true, when_false) = if *tested { (first, second) } else { (second, first) };
        let subject = switch.inputs.first().map(|subject| self.expression(subject, depth + 1)).unwrap_or_default();
        match (self.truth(when_true), self.truth(when_false)) {
            (Some(true), Some(false)) => subject,
            (Some(false), Some(true)) => format!("!{subject}"),
            (Some(true), None) => format!("{subject} || {}", self.expression(when_false, depth + 1)),
            (None, Some(false)) => format!("{subject} && {}", self.expression(when_true, depth + 1)),
            _ => self.inlined_fn(select),
        }
    }

    /// Returns the name of the `fn` that a node computes the value of, if it is inlined into the body.
    fn inlined_fn(&self, node: &Node) -> String {
        let call = node.origin.inlined_call.filter(|call| Some(*call) != self.inlined_call);
        let call = call.and_then(|call| self.program.inlined_calls.get(call.0 as usize));
        call.map_or_else(|| "…".into(), |call| call.function.to_string())
    }

    fn truth(&self, source: &Operand) -> Option<bool> {
        match source {
            Operand::Constant(index) => match self.graph.constants.get(*index as usize)? {
                Value::Bool(value) => Some(*value),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Returns the names of the parameters that an operation hands to its bodies: its states, then the element.
fn own_parameters(kind: &NodeKind) -> Vec<String> {
    let (count, states) = (kind.own().parameters, kind.states());
    let state = if count > states { "so far" } else { "state" };
    let states = (1..=states).map(|number| match states {
        1 => state.to_owned(),
        _ => format!("{state} {number}"),
    });
    states.chain(std::iter::repeat("each".to_owned())).take(count).collect()
}

/// Returns the name of a resource.
pub(crate) fn resource(resource: &Resource) -> &str {
    match resource {
        Resource::Shared(name) | Resource::Constraint(name) | Resource::World(name) | Resource::State(name) => name,
    }
}

/// Shortens a text to one line of at most [`LENGTH_MAX`] characters.
pub(crate) fn shorten(text: &str) -> String {
    let line = text.chars().map(|character| if character.is_control() { ' ' } else { character });
    if text.chars().count() <= LENGTH_MAX {
        return line.collect();
    }
    line.take(LENGTH_MAX - 1).chain(['…']).collect()
}

fn constant(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("{text:?}"),
        other => other.to_string(),
    }
}

fn opposite(test: &ArmTest) -> String {
    match test {
        ArmTest::Value(Value::Bool(value)) => (!value).to_string(),
        _ => "otherwise".into(),
    }
}

fn infix(prim: Prim) -> Option<&'static str> {
    Some(match prim {
        Prim::Add => "+",
        Prim::Subtract => "-",
        Prim::Multiply => "*",
        Prim::Divide => "/",
        Prim::Remainder => "%",
        Prim::And => "&&",
        Prim::Or => "||",
        Prim::Equal => "==",
        Prim::NotEqual => "!=",
        Prim::Less => "<",
        Prim::LessOrEqual => "<=",
        Prim::Greater => ">",
        Prim::GreaterOrEqual => ">=",
        _ => return None,
    })
}
