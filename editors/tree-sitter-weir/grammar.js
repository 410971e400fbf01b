/// The grammar of Weir for editors. `cargo test` in this folder compares it with the parser on every example.

/// Operator precedences, as in `crates/weir-syntax/src/parser/expressions.rs`.
const LEVEL = {
  greedy: -3, // `return`, closures: they extend as far to the right as possible
  otherwise: -2,
  within: -1,
  pipe: 1,
  or: 2,
  and: 3,
  compare: 4,
  add: 5,
  multiply: 6,
  unary: 7,
  suffix: 8,
}

const commas = (rule) => optional(commas1(rule))
const commas1 = (rule) => seq(rule, repeat(seq(',', rule)), optional(','))

module.exports = grammar({
  name: 'weir',

  // A line end is a token only where a statement or element can end; `src/scanner.c` decides whether the next line
  // continues this one.
  externals: ($) => [$._line_end, $.text_content, $.block_content, $._error_sentinel],
  extras: ($) => [/[ \t\r\n\f\uFEFF]/, $.comment, $.doc_comment],
  word: ($) => $.identifier,

  conflicts: ($) => [
    [$.table_item],
    [$._operand, $.record_expression],
    [$._operand, $.closure_parameter],
    [$.path, $._operand],
    [$.record_path, $._operand],
    [$.record_path, $.field_expression],
    [$.variant_pattern, $.path],
  ],

  supertypes: ($) => [$._item, $._statement],

  rules: {
    source_file: ($) => seq(repeat($._end), optional(seq($._item, repeat(seq(repeat1($._end), $._item)), repeat($._end)))),

    _end: ($) => choice($._line_end, ';'),
    comment: () => token(choice('//', /\/\/[^\/!\n][^\n]*/, /\/\/\/\/[^\n]*/)),
    doc_comment: () => token(choice(/\/\/\/([^\/\n][^\n]*)?/, /\/\/![^\n]*/)),

    // Items

    _item: ($) =>
      choice(
        $.use_item,
        $.library_item,
        $.shared_item,
        $.constraint_item,
        $.table_item,
        $.config_item,
        $.constant_item,
        $.alias_item,
        $.record_item,
        $.enum_item,
        $.function_item,
        $.service_item,
        $.entry_item,
        $.failure_handler,
        $.test_item,
      ),

    use_item: ($) => seq('use', $.used_module, repeat(seq(',', $.used_module))),
    used_module: ($) =>
      seq(repeat(seq(field('folder', $.identifier), '.')), field('name', $.identifier), optional(seq('as', field('alias', $.identifier)))),
    library_item: ($) => seq('library', field('name', $.identifier), '=', field('path', $.text)),
    shared_item: ($) =>
      seq(
        'shared',
        field('name', $.identifier),
        optional(seq(':', $._type)),
        '=',
        field('value', $._expression),
        optional(seq('per', 'session')),
      ),
    constraint_item: ($) =>
      seq(
        optional('pub'),
        'constraint',
        field('name', $.identifier),
        optional(seq('per', 'session')),
        optional(seq('on', $.constraint_binding, repeat(seq(',', $.constraint_binding)))),
      ),
    // `read` alone is a name.
    constraint_binding: ($) => choice(seq(optional('read'), $.path), alias('read', $.identifier)),
    table_item: ($) =>
      seq(
        optional('pub'),
        'table',
        field('name', $.identifier),
        ':',
        field('row', $._type),
        repeat(seq(optional($._line_end), $.table_clause)),
      ),
    table_clause: ($) =>
      choice(
        seq('key', $.columns, optional('auto')),
        seq(choice('index', 'unique'), $.columns),
        seq('references', $.columns, ':', field('table', $.path), optional('cascade')),
        seq(choice('default', 'soft', 'existing'), optional($.arguments)),
        seq('migrate', field('old', $._type), ':', field('change', $.identifier), optional('batched')),
      ),
    columns: ($) => choice($.identifier, seq('(', commas($.identifier), ')')),
    config_item: ($) =>
      seq(
        choice('config', 'secret'),
        field('name', $.identifier),
        ':',
        field('type', $._type),
        optional(seq('=', field('default', $._expression))),
      ),
    constant_item: ($) =>
      seq(
        optional('pub'),
        'const',
        field('name', $.identifier),
        optional(seq(':', field('type', $._type))),
        '=',
        field('value', $._expression),
      ),
    alias_item: ($) => seq(optional('pub'), 'type', field('name', $.type_identifier), '=', field('type', $._type)),
    record_item: ($) => seq(optional('pub'), 'record', field('name', $.type_identifier), $._field_declarations),
    _field_declarations: ($) => braces($, $.field_declaration),
    field_declaration: ($) => 
      seq(
        field('name', $.identifier),
        ':',
        field('type', $._type),
        optional($.external_name),
        optional(seq('=', field('default', $._expression))),
      ),
    external_name: ($) => seq('as', $.text),
    enum_item: ($) => seq(optional('pub'), 'enum', field('name', $.type_identifier), braces($, $.variant)),
    variant: ($) => seq(field('name', $.type_identifier), optional(seq('(', commas($.payload_field), ')')), optional($.external_name)),
    payload_field: ($) => seq(optional(seq(field('name', $.identifier), ':')), field('type', $._type)),
    function_item: ($) =>
      seq(
        optional('pub'),
        'fn',
        field('name', $.identifier),
        $.parameters,
        optional(seq('->', field('returns', $._type))),
        field('body', $.block),
      ),
    parameters: ($) => seq('(', commas($.parameter), ')'),
    parameter: ($) =>
      seq(
        optional(choice('body', 'form', 'header', 'cookie', 'unprefixed_cookie', 'encrypted_cookie')),
        field(
          'name',
          choice(
            $.identifier,
            alias('body', $.identifier),
            alias('form', $.identifier),
            alias('header', $.identifier),
            alias('cookie', $.identifier),
            alias('unprefixed_cookie', $.identifier),
            alias('encrypted_cookie', $.identifier),
          ),
        ),
        ':',
        field('type', $._type),
        optional(seq('=', field('default', $._expression))),
      ),
    service_item: ($) =>
      seq(
        'service',
        field('name', $.identifier),
        'on',
        field('transport', $.identifier),
        optional($.arguments),
        '{',
        repeat($._end),
        optional(seq($._member, repeat(seq(repeat1($._end), $._member)), repeat($._end))),
        '}',
      ),
    _member: ($) => choice($.session, $.failure_handler, $.before, $.route),
    before: ($) => seq('before', optional($.parameters), field('body', $.block)),
    session: ($) => seq('session', '=', $._expression),
    route: ($) =>
      seq(
        field('method', choice('get', 'post', 'put', 'delete', 'patch', 'head', 'options')),
        field('path', $.route_path),
        optional($.parameters),
        field('body', $.block),
      ),
    route_path: ($) => seq('"', repeat(choice($.text_content, $.escape, $.path_parameter)), token.immediate('"')),
    path_parameter: ($) => seq(token.immediate('{'), $.identifier, optional('..'), '}'),
    entry_item: ($) =>
      seq(
        'for',
        $._pattern,
        'in',
        field('source', $._expression),
        field('body', $.block),
        optional(seq('at', 'end', field('end', $.block))),
      ),
    failure_handler: ($) =>
      seq(
        'on',
        'failure',
        'of',
        field('function', $.path),
        optional(field('arguments', $.handler_arguments)),
        optional(seq('as', $.identifier)),
        field('body', $.block),
      ),
    handler_arguments: ($) => seq('(', optional(seq($._pattern, repeat(seq(',', $._pattern)), optional(','))), ')'),
    test_item: ($) => seq('test', field('name', choice($.text, $.block_text)), field('body', $.block)),

    // Statements

    block: ($) =>
      seq('{', repeat($._end), optional(seq($._statement, repeat(seq(repeat1($._end), $._statement)), repeat($._end))), '}'),
    _statement: ($) => choice($.let_statement, $.expect_statement, $.session, $.failure_handler, $._expression),
    let_statement: ($) =>
      seq(
        'let',
        field('pattern', $._pattern),
        optional(seq(':', field('type', $._type))),
        '=',
        field('value', $._expression),
      ),
    expect_statement: ($) => seq('expect', $._expression),

    // Expressions

    _expression: ($) =>
      choice(
        $.else_expression,
        $.within_expression,
        $.pipe_expression,
        $.binary_expression,
        $.unary_expression,
        $.return_expression,
        $.closure,
        $.loop_expression,
        $._operand,
      ),

    else_expression: ($) =>
      prec.right(
        LEVEL.otherwise,
        seq(
          field('value', $._expression),
          'else',
          optional(seq('as', field('failure', $.identifier))),
          field('otherwise', $._expression),
        ),
      ),
    within_expression: ($) => prec.left(LEVEL.within, seq(field('value', $._expression), 'within', field('limit', $._expression))),
    pipe_expression: ($) => prec.left(LEVEL.pipe, seq($._expression, '|>', $._expression)),
    binary_expression: ($) =>
      choice(
        ...[
          [LEVEL.or, '||'],
          [LEVEL.and, '&&'],
          [LEVEL.compare, choice('==', '!=', '<', '<=', '>', '>=')],
          [LEVEL.add, choice('+', '-')],
          [LEVEL.multiply, choice('*', '/', '%')],
        ].map(([level, operator]) =>
          prec.left(level, seq(field('left', $._expression), field('operator', operator), field('right', $._expression))),
        ),
      ),
    unary_expression: ($) => prec(LEVEL.unary, seq(field('operator', choice('-', '!')), $._expression)),
    return_expression: ($) => prec.right(LEVEL.greedy, seq('return', optional($._expression))),
    closure: ($) => prec.right(LEVEL.greedy, seq(choice('||', seq('|', commas($.closure_parameter), '|')), $._expression)),
    closure_parameter: ($) => seq($._simple_pattern, optional(seq(':', $._type))),
    loop_expression: ($) =>
      prec.right(
        LEVEL.pipe,
        seq('loop', $._pattern, '=', $._expression, $.block, 'until', $._expression, 'at', 'most', $._expression),
      ),

    _operand: ($) =>
      choice(
        $._literal,
        $.text,
        $.block_text,
        $.html,
        $.block_html,
        $.identifier,
        // Words that are keywords at the beginning of a statement are names elsewhere.
        alias(choice('on', 'session'), $.identifier),
        $.type_identifier,
        $.field_expression,
        $.index_expression,
        $.call_expression,
        $.try_expression,
        $.record_expression,
        $.parenthesized,
        $.tuple,
        $.list,
        $.map,
        $.block,
        $.if_expression,
        $.match_expression,
        $.for_expression,
        $.fold_expression,
        $.atomic_expression,
        $.race_expression,
        $.retry_expression,
        $.with_expression,
      ),

    field_expression: ($) =>
      prec(
        LEVEL.suffix,
        seq(
          $._expression,
          choice(
            seq('.', field('name', choice($.identifier, $.type_identifier))),
            alias(token(/\.[0-9]+/), $.tuple_index),
          ),
        ),
      ),
    index_expression: ($) => prec(LEVEL.suffix, seq($._expression, '[', $._expression, ']')),
    call_expression: ($) => prec(LEVEL.suffix, seq(field('function', $._expression), $.arguments)),
    arguments: ($) => seq('(', commas($.argument), ')'),
    argument: ($) => seq(optional(seq(field('name', $.identifier), ':')), field('value', $._expression)),
    try_expression: ($) => prec(LEVEL.suffix, seq($._expression, '?')),
    record_expression: ($) =>
      prec.dynamic(-1, prec(LEVEL.suffix, seq(field('name', $.record_path), braces($, choice($.base, $.field_value))))),
    record_path: ($) => seq(repeat(seq(choice($.identifier, $.type_identifier), '.')), $.type_identifier),
    base: ($) => seq('..', $._expression),
    field_value: ($) => seq(field('name', $.identifier), optional(seq(':', field('value', $._expression)))),

    parenthesized: ($) => seq('(', $._expression, ')'),
    tuple: ($) => seq('(', optional(seq($._expression, ',', commas($._expression))), ')'),
    list: ($) => seq('[', commas($._expression), ']'),
    map: ($) => seq('[', choice(':', commas1($.map_entry)), ']'),
    map_entry: ($) => seq(field('key', $._expression), ':', field('value', $._expression)),

    if_expression: ($) =>
      prec.right(
        seq(
          'if',
          field('condition', $._expression),
          field('then', $.block),
          optional(seq('else', field('otherwise', choice($.block, $.if_expression)))),
        ),
      ),
    match_expression: ($) => seq('match', field('value', $._expression), braces($, $.arm)),
    arm: ($) => seq(field('pattern', $._pattern), optional(seq('if', field('guard', $._expression))), '=>', field('body', $._expression)),
    for_expression: ($) => seq('for', $._pattern, 'in', $._expression, optional($.query), $.block),
    query: ($) =>
      choice(
        seq('if', $._expression, optional($.order), optional($.query_limit), optional($.query_after)),
        seq($.order, optional($.query_limit), optional($.query_after)),
        seq($.query_limit, optional($.query_after)),
        $.query_after,
      ),
    order: ($) => seq('order', 'by', $.order_key, repeat(seq(',', $.order_key))),
    order_key: ($) => seq($._expression, optional('desc')),
    query_limit: ($) => seq('limit', $._expression),
    query_after: ($) => seq('after', $._expression),
    fold_expression: ($) => seq('fold', $._pattern, '=', $._expression, 'for', $._pattern, 'in', $._expression, $.block),
    atomic_expression: ($) => seq('atomic', $.atomic_resource, repeat(seq(',', $.atomic_resource)), $.block),
    atomic_resource: ($) =>
      seq(
        choice(seq(optional('read'), $.path), alias('read', $.identifier)),
        optional(seq('per', 'session')),
      ),
    race_expression: ($) => seq('race', braces($, $._expression)),
    retry_expression: ($) => seq('retry', $.arguments, $.block),
    with_expression: ($) => seq('with', $.replacement, repeat(seq(',', $.replacement)), $.block),
    replacement: ($) => seq(field('function', $.path), '=', field('value', $._expression)),

    // Patterns

    _pattern: ($) => choice($._simple_pattern, $.or_pattern),
    or_pattern: ($) => prec.left(seq($._simple_pattern, repeat1(seq('|', $._simple_pattern)))),
    _simple_pattern: ($) =>
      choice(
        $.wildcard,
        $.identifier,
        $._literal,
        $.negative_number,
        $.range_pattern,
        $.text,
        $.variant_pattern,
        $.record_pattern,
        $.tuple_pattern,
        $.list_pattern,
      ),
    wildcard: () => '_',
    negative_number: ($) => seq('-', $.number),
    range_pattern: ($) =>
      prec.right(
        choice(
          seq($._bound, choice('..', '..='), optional($._bound)),
          seq(choice('..', '..='), $._bound),
        ),
      ),
    _bound: ($) => choice($.number, $.negative_number),
    variant_pattern: ($) => seq($.record_path, optional(seq('(', commas($.pattern_argument), ')'))),
    pattern_argument: ($) => seq(optional(seq(field('name', $.identifier), ':')), $._pattern),
    record_pattern: ($) => seq($.record_path, braces($, choice('..', $.field_pattern))),
    field_pattern: ($) => seq(field('name', $.identifier), optional(seq(':', $._pattern))),
    tuple_pattern: ($) => seq('(', commas($._pattern), ')'),
    list_pattern: ($) => seq('[', commas(choice($._pattern, $.rest_pattern)), ']'),
    rest_pattern: ($) => seq('..', optional($.identifier)),

    // Types

    _type: ($) => choice($.named_type, $.type_parameter, $.tuple_type, $.function_type),
    named_type: ($) => prec.right(seq($.record_path, optional(seq('(', commas($._type), ')')))),
    type_parameter: ($) => $.identifier,
    tuple_type: ($) => seq('(', commas($._type), ')'),
    function_type: ($) => prec.right(seq('fn', '(', commas($._type), ')', optional(seq('->', $._type)))),
    path: ($) => seq($.identifier, repeat(seq('.', $.identifier))),

    // Literals

    _literal: ($) => choice($.number, $.boolean),
    boolean: () => choice('true', 'false'),
    number: () => token(choice(/[0-9][0-9A-Za-z_]*(\.[0-9][0-9A-Za-z_]*)?/, /[0-9][0-9_]*(\.[0-9][0-9_]*)?[eE][+-]?[0-9][0-9_]*/)),
    html: ($) => seq('html"', repeat(choice($.text_content, $.escape, $.interpolation)), token.immediate('"')),
    block_html: ($) =>
      seq('html"""', repeat(choice($.block_content, $.escape, $.interpolation)), token.immediate('"""')),
    text: ($) => seq('"', repeat(choice($.text_content, $.escape, $.interpolation)), token.immediate('"')),
    block_text: ($) => seq('"""', repeat(choice($.block_content, $.escape, $.interpolation)), token.immediate('"""')),
    escape: () => token.immediate(seq('\\', choice(/u\{[0-9a-fA-F]{1,6}\}/, /[nrt0"\\{}]/))),
    interpolation: ($) => seq(token.immediate('{'), $._expression, optional(seq(':', $.format)), '}'),
    format: () => token(/[<>][0-9]+,?(\.[0-9]+)?|[0-9]+,?(\.[0-9]+)?|,(\.[0-9]+)?|\.[0-9]+/),

    identifier: () => /[\p{Ll}\p{Lo}_][\p{XID_Continue}]*/,
    type_identifier: () => /[\p{Lu}][\p{XID_Continue}]*/,
  },
})

/// Elements in braces, with commas or line ends between them.
function braces($, element) {
  const ends = repeat1(choice(',', $._line_end))
  return seq('{', repeat($._line_end), optional(seq(element, repeat(seq(ends, element)), optional(ends))), '}')
}
