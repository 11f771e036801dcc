package fault

// callPhrases: the server is well, and a call or a tool is not. MCP libraries,
// validators and the models' providers print these.
var callPhrases = []row{
	{MethodNotFound, plain, []string{
		"method not found",
		"method <tool> not found",
		"prompts|resources|tools|logging|completions|sampling|roots not supported",
		"does not support prompts|resources|tools|logging|completions|sampling|roots",
	}},
	{MethodNotFound, likely, []string{
		"-32601",
		"unknown method",
	}},

	{OutputSchema, narrow, []string{
		"invalid structured content",
		"output validation error",
		"outputschema defined",
		"has an output schema but did not return structured content",
		"structured content does not match",
	}},

	{InvalidArguments, plain, []string{
		"invalid enum value",
		"invalid arguments for tool <tool>",
		"invalid arguments",
		"invalid params|parameters",
		"input validation error",
		"validation error for call <tool>",
		"validation error|errors for <tool>",
		"input should be a valid",
		"expected object|array|string|number|boolean|integer received",
		"invalid_type ... expected ... received",
		"missing required argument|parameter|property|field|parameters|arguments",
		"<name> is a required property",
		"unexpected keyword argument",
		"required positional argument",
		"additional properties are not allowed",
		"must have required property",
		"unrecognized_keys",
		"mutually exclusive",
		"field required",
	}},
	{InvalidArguments, likely, []string{
		"must be string|number|object|array|boolean|integer",
		"is not of type",
		"invalid argument|invalid_argument",
		"unknown argument|parameter",
		"cannot be empty|null|blank",
		"must provide|specify either|exactly|one|at",
		"cannot use|specify|combine both",
		"requires an element of type",
		"is required when",
		"cannot deserialize value of type",
		"validating arguments",
	}},
	{InvalidArguments, hint, []string{
		"-32602",
	}},

	{SchemaRejected, narrow, []string{
		"is required to be supplied",
		"in context ... is not permitted",
		"input_schema ... invalid",
		"input_schema ... does not support",
		"input_schema ... field required",
		"invalid schema for function <tool>",
		"invalid_function_parameters",
		"function_declarations ... parameters",
		"functiondeclaration ... parameters|schema",
		"toolspec inputschema",
		"schema is invalid",
		"no schema with key or ref",
		"schema ... incompatible with",
		"reference to undefined schema",
		"can't resolve reference",
		"schema at top-level requires",
		"schema must have ... type",
		"array schema missing items",
		"does not support oneof allof",
		"proto field is not repeating",
		"only allowed for object type",
		"strict mode unknown keyword",
	}},
	{SchemaRejected, plain, []string{
		"input schema|schemas ... invalid|missing|must",
		"inputschema ... invalid|missing|must|invalid_type|invalid_literal",
		"schema ... unsupported",
	}},

	{ToolNameInvalid, narrow, []string{
		"name string should have at most",
		"pattern a za z0",
		"tool name ... exceeds|longer",
		"function name string too long",
		"tools ... name string should|does|too",
		"tool name too long",
		"toolspec name ... constraint",
		"tool name length",
		"tool names must be unique",
		"invalid function name",
		"invalid tool name",
		"duplicate function declaration",
	}},

	{TooManyTools, narrow, []string{
		"more than <number> tools",
		"too many tools",
		"exceeds|exceeded ... tool|tools limit",
		"tools array too long",
	}},

	{ResultTooLarge, plain, []string{
		"tool <tool> response ... exceeds maximum allowed tokens",
		"exceeds maximum allowed tokens",
		"mcpcontenttoolargeerror",
		"response|result|output too large",
		"response|result|output is too large",
		"response|result|output ... exceeds",
	}},
	{ResultTooLarge, hint, []string{
		"maximum context length",
		"prompt is too long",
	}},

	{AgentLoop, likely, []string{
		"no tools available",
		"tool <tool> is not available",
		"unavailable tool <tool>",
		"no such tool available",
		"no such tool",
	}},
	{AgentLoop, plain, []string{
		"recursion limit ... reached",
		"maximum|max iterations|turns",
		"loop detected",
	}},

	{StaleTools, likely, []string{
		"unknown tool <tool>",
		"unknown tool",
		"tool <tool> not found",
		"tool not found",
	}},

	{ToolFailure, hint, []string{
		"success false",
		"error executing tool <tool>",
	}},
}
