package registry

import "sync"

// builtin is what we know of the best-known servers without having asked
// anybody. The registry has no place for the page where a token is made, nor for
// the names that people set by mistake, and many of these servers are not in it.
//
// Required means that the server refuses to start, or that every call fails,
// without it. A row says where that was seen: "source" is the text of the
// published package (npm, with version), its README or the issue. Nobody's word
// was taken for it otherwise.
var builtin = []Entry{
	{
		// Source: server.json of github/github-mcp-server; github/github-mcp-server#144
		// for the message; READMEs of clients for the wrong names.
		Name: "github", Title: "GitHub", BuiltIn: true,
		Repository: "https://github.com/github/github-mcp-server",
		Packages: []Package{{Type: "oci", Identifier: "ghcr.io/github/github-mcp-server", Runtime: "docker", Transport: "stdio", Variables: []Variable{
			{Name: "GITHUB_PERSONAL_ACCESS_TOKEN", Required: true, Secret: true,
				Help:     "https://github.com/settings/personal-access-tokens/new",
				Mistaken: []string{"GITHUB_TOKEN", "GITHUB_PAT", "GH_TOKEN"}},
		}}},
		Remotes: []Remote{{Type: "streamable-http", URL: "https://api.githubcopilot.com/mcp/"}},
	},
	{
		// Source: @modelcontextprotocol/server-github 2025.4.8, code and README.
		// Without a token it starts, and reads what is public.
		Name: "github-reference", Title: "GitHub (reference)", BuiltIn: true,
		Status: Deprecated, StatusMessage: "development has moved to github.com/github/github-mcp-server",
		Packages: []Package{npm("@modelcontextprotocol/server-github",
			Variable{Name: "GITHUB_PERSONAL_ACCESS_TOKEN", Secret: true,
				Help:     "https://github.com/settings/tokens",
				Mistaken: []string{"GITHUB_TOKEN", "GITHUB_PAT", "GH_TOKEN"}})},
	},
	{
		// Source: @notionhq/notion-mcp-server 2.5.2, code and README; the wrong name is
		// anthropics/claude-code#14870: it starts, and every call answers 401.
		Name: "notion", Title: "Notion", BuiltIn: true,
		Status: Deprecated, StatusMessage: "no longer maintained; Notion runs a hosted server, see developers.notion.com/docs/mcp",
		Website: "https://developers.notion.com/docs/mcp",
		Packages: []Package{npm("@notionhq/notion-mcp-server",
			Variable{Name: "NOTION_TOKEN", Required: true, Secret: true,
				Help:     "https://www.notion.so/profile/integrations",
				Or:       []string{"OPENAPI_MCP_HEADERS"},
				Mistaken: []string{"NOTION_API_KEY"}})},
	},
	{
		// Source: @modelcontextprotocol/server-slack 2025.4.25, code and README.
		Name: "slack-reference", Title: "Slack (reference)", BuiltIn: true,
		Status: Deprecated, StatusMessage: "archived by its authors",
		Packages: []Package{npm("@modelcontextprotocol/server-slack",
			Variable{Name: "SLACK_BOT_TOKEN", Required: true, Secret: true, Help: "https://api.slack.com/apps"},
			Variable{Name: "SLACK_TEAM_ID", Required: true, Description: "begins with a T",
				Help: "https://slack.com/help/articles/221769328-Locate-your-Slack-URL-or-ID"},
			Variable{Name: "SLACK_CHANNEL_IDS"})},
	},
	{
		// Source: slack-mcp-server 1.3.0, README: a user token, a bot token, or the pair
		// of a browser.
		Name: "slack", Title: "Slack", BuiltIn: true,
		Repository: "https://github.com/korotovsky/slack-mcp-server",
		Packages: []Package{npm("slack-mcp-server",
			Variable{Name: "SLACK_MCP_XOXP_TOKEN", Required: true, Secret: true, Help: "https://api.slack.com/apps",
				Or:       []string{"SLACK_MCP_XOXB_TOKEN", "SLACK_MCP_XOXC_TOKEN"},
				Mistaken: []string{"SLACK_BOT_TOKEN"}},
			Variable{Name: "SLACK_MCP_XOXD_TOKEN", Secret: true, Description: "goes with SLACK_MCP_XOXC_TOKEN"})},
	},
	{
		// Source: @modelcontextprotocol/server-brave-search 0.6.2, code and README.
		Name: "brave-search-reference", Title: "Brave Search (reference)", BuiltIn: true,
		Status: Deprecated, StatusMessage: "archived; Brave publishes @brave/brave-search-mcp-server",
		Packages: []Package{npm("@modelcontextprotocol/server-brave-search",
			Variable{Name: "BRAVE_API_KEY", Required: true, Secret: true, Help: "https://api.search.brave.com/app/keys"})},
	},
	{
		// Source: @brave/brave-search-mcp-server 2.1.4, code and README.
		Name: "brave-search", Title: "Brave Search", BuiltIn: true,
		Packages: []Package{
			npm("@brave/brave-search-mcp-server", braveKey),
			{Type: "oci", Identifier: "mcp/brave-search", Runtime: "docker", Transport: "stdio", Variables: []Variable{braveKey}},
		},
	},
	{
		// Source: @modelcontextprotocol/server-gitlab 2025.4.25, code and README.
		Name: "gitlab-reference", Title: "GitLab (reference)", BuiltIn: true,
		Status: Deprecated, StatusMessage: "archived by its authors",
		Packages: []Package{npm("@modelcontextprotocol/server-gitlab",
			Variable{Name: "GITLAB_PERSONAL_ACCESS_TOKEN", Required: true, Secret: true,
				Help: "https://docs.gitlab.com/ee/user/profile/personal_access_tokens.html"},
			Variable{Name: "GITLAB_API_URL", Default: "https://gitlab.com/api/v4"})},
	},
	{
		// Source: @zereight/mcp-gitlab 2.1.64, README: one of several ways to sign in, so
		// none is required.
		Name: "gitlab", Title: "GitLab (community)", BuiltIn: true,
		Packages: []Package{npm("@zereight/mcp-gitlab",
			Variable{Name: "GITLAB_PERSONAL_ACCESS_TOKEN", Secret: true,
				Help: "https://docs.gitlab.com/ee/user/profile/personal_access_tokens.html",
				Or:   []string{"GITLAB_JOB_TOKEN", "GITLAB_USE_OAUTH", "GITLAB_MCP_OAUTH"}},
			Variable{Name: "GITLAB_API_URL"})},
	},
	{
		// Source: @modelcontextprotocol/server-postgres 0.6.2, code.
		Name: "postgres-reference", Title: "PostgreSQL (reference)", BuiltIn: true,
		Status: Deprecated, StatusMessage: "archived by its authors",
		Packages: []Package{{Type: "npm", Identifier: "@modelcontextprotocol/server-postgres", Runtime: "npx", Transport: "stdio",
			Arguments: []Argument{{Hint: "database_url", Description: "postgresql://host:port/database", Required: true, Secret: true}}}},
	},
	{
		// Source: @modelcontextprotocol/server-redis 2025.4.25, code.
		Name: "redis-reference", Title: "Redis (reference)", BuiltIn: true,
		Status: Deprecated, StatusMessage: "archived by its authors",
		Packages: []Package{{Type: "npm", Identifier: "@modelcontextprotocol/server-redis", Runtime: "npx", Transport: "stdio",
			Arguments: []Argument{{Hint: "redis_url", Description: "redis://localhost:6379 if left out", Secret: true}}}},
	},
	{
		// Source: @modelcontextprotocol/server-google-maps 0.6.2, code and README.
		Name: "google-maps-reference", Title: "Google Maps (reference)", BuiltIn: true,
		Status: Deprecated, StatusMessage: "archived by its authors",
		Packages: []Package{npm("@modelcontextprotocol/server-google-maps",
			Variable{Name: "GOOGLE_MAPS_API_KEY", Required: true, Secret: true,
				Help: "https://developers.google.com/maps/documentation/javascript/get-api-key"})},
	},
	{
		// Source: @modelcontextprotocol/server-everart 0.6.2, code.
		Name: "everart-reference", Title: "EverArt (reference)", BuiltIn: true,
		Status: Deprecated, StatusMessage: "archived by its authors",
		Packages: []Package{npm("@modelcontextprotocol/server-everart",
			Variable{Name: "EVERART_API_KEY", Required: true, Secret: true})},
	},
	{
		// Source: @sentry/mcp-server 0.39.0, code: a token, or an earlier "auth login".
		Name: "sentry", Title: "Sentry", BuiltIn: true,
		Packages: []Package{npm("@sentry/mcp-server",
			Variable{Name: "SENTRY_ACCESS_TOKEN", Secret: true, Or: []string{"--access-token"}, Help: "https://docs.sentry.io/api/auth/"},
			Variable{Name: "SENTRY_HOST"})},
		Remotes: []Remote{{Type: "streamable-http", URL: "https://mcp.sentry.dev/mcp"}},
	},
	{
		// Source: @stripe/mcp 0.3.3, README.
		Name: "stripe", Title: "Stripe", BuiltIn: true,
		Packages: []Package{
			npm("@stripe/mcp", stripeKey),
			{Type: "oci", Identifier: "mcp/stripe", Runtime: "docker", Transport: "stdio", Variables: []Variable{stripeKey}},
		},
		Remotes: []Remote{{Type: "streamable-http", URL: "https://mcp.stripe.com"}},
	},
	{
		// Source: @supabase/mcp-server-supabase 0.13.0, code: it exits without a token.
		Name: "supabase", Title: "Supabase", BuiltIn: true,
		Packages: []Package{npm("@supabase/mcp-server-supabase",
			Variable{Name: "SUPABASE_ACCESS_TOKEN", Required: true, Secret: true, Or: []string{"--access-token"},
				Help: "https://supabase.com/dashboard/account/tokens"})},
	},
	{
		// Source: @upstash/context7-mcp 4.1.1, code and README.
		Name: "context7", Title: "Context7", BuiltIn: true,
		Packages: []Package{npm("@upstash/context7-mcp",
			Variable{Name: "CONTEXT7_API_KEY", Secret: true, Or: []string{"--api-key"}, Help: "https://context7.com/dashboard"})},
		Remotes: []Remote{{Type: "streamable-http", URL: "https://mcp.context7.com/mcp"}},
	},
	{
		// Source: tavily-mcp 0.2.22, code: without a key only search and extract.
		Name: "tavily", Title: "Tavily", BuiltIn: true,
		Packages: []Package{npm("tavily-mcp",
			Variable{Name: "TAVILY_API_KEY", Secret: true, Help: "https://www.tavily.com/"})},
		Remotes: []Remote{{Type: "streamable-http", URL: "https://mcp.tavily.com/mcp/"}},
	},
	{
		// Source: exa-mcp-server 3.4.1, code and README: the hosted one works without.
		Name: "exa", Title: "Exa", BuiltIn: true,
		Packages: []Package{npm("exa-mcp-server",
			Variable{Name: "EXA_API_KEY", Secret: true, Help: "https://dashboard.exa.ai/api-keys"})},
		Remotes: []Remote{{Type: "streamable-http", URL: "https://mcp.exa.ai/mcp"}},
	},
	{
		// Source: firecrawl-mcp 3.26.0, code: without a key only scrape and search.
		Name: "firecrawl", Title: "Firecrawl", BuiltIn: true,
		Packages: []Package{npm("firecrawl-mcp",
			Variable{Name: "FIRECRAWL_API_KEY", Secret: true, Or: []string{"FIRECRAWL_OAUTH_TOKEN", "FIRECRAWL_API_URL"},
				Help: "https://www.firecrawl.dev/app/api-keys"},
			Variable{Name: "FIRECRAWL_API_URL", Description: "of a server of one's own"})},
		Remotes: []Remote{{Type: "streamable-http", URL: "https://mcp.firecrawl.dev/v2/mcp"}},
	},
	{
		// Source: listings of clients' plug-ins for the URL; it signs in with OAuth.
		Name: "linear", Title: "Linear", BuiltIn: true,
		Remotes: []Remote{{Type: "streamable-http", URL: "https://mcp.linear.app/mcp"}, {Type: "sse", URL: "https://mcp.linear.app/sse"}},
	},
	{
		// Source: linear-mcp-server 0.1.0, code and README.
		Name: "linear-community", Title: "Linear (community)", BuiltIn: true,
		Packages: []Package{npm("linear-mcp-server",
			Variable{Name: "LINEAR_API_KEY", Required: true, Secret: true,
				Help: "https://developers.linear.app/docs/graphql/working-with-the-graphql-api"})},
	},
	{
		// Source: support.atlassian.com, "Getting started with the Atlassian Rovo MCP
		// Server": the end of /v1/sse.
		Name: "atlassian", Title: "Atlassian Rovo", BuiltIn: true,
		Website: "https://support.atlassian.com/rovo/docs/getting-started-with-the-atlassian-remote-mcp-server/",
		Remotes: []Remote{
			{Type: "streamable-http", URL: "https://mcp.atlassian.com/v1/mcp"},
			{Type: "streamable-http", URL: "https://mcp.atlassian.com/v1/mcp/authv2"},
			{Type: "sse", URL: "https://mcp.atlassian.com/v1/sse",
				Gone: "not supported after 30 June 2026; Atlassian recommends https://mcp.atlassian.com/v1/mcp/authv2"},
		},
	},
	{
		// Source: README and .env.example of sooperset/mcp-atlassian. Either product will
		// do, so neither URL is required.
		Name: "atlassian-community", Title: "Atlassian (community)", BuiltIn: true,
		Repository: "https://github.com/sooperset/mcp-atlassian",
		Packages: []Package{
			{Type: "pypi", Identifier: "mcp-atlassian", Runtime: "uvx", Transport: "stdio", Variables: atlassianVariables},
			{Type: "oci", Identifier: "ghcr.io/sooperset/mcp-atlassian", Runtime: "docker", Transport: "stdio", Variables: atlassianVariables},
		},
	},
	{
		// Source: docs.scrapeless.com and scrapeless-mcp-server 0.4.5, code; the wrong
		// name is scrapeless-ai/scrapeless-mcp-server#10: calls are never answered.
		Name: "scrapeless", Title: "Scrapeless", BuiltIn: true,
		Packages: []Package{npm("scrapeless-mcp-server",
			Variable{Name: "SCRAPELESS_KEY", Required: true, Secret: true, Mistaken: []string{"SCRAPELESS_API_KEY"}})},
	},
	{
		// Source: airtable-mcp-server 1.14.0, code and README.
		Name: "airtable", Title: "Airtable", BuiltIn: true,
		Packages: []Package{npm("airtable-mcp-server",
			Variable{Name: "AIRTABLE_API_KEY", Required: true, Secret: true, Help: "https://airtable.com/create/tokens/new"})},
	},
	{
		// Source: @perplexity-ai/mcp-server 1.2.1, code and README.
		Name: "perplexity", Title: "Perplexity", BuiltIn: true,
		Packages: []Package{npm("@perplexity-ai/mcp-server",
			Variable{Name: "PERPLEXITY_API_KEY", Required: true, Secret: true, Help: "https://console.perplexity.ai"})},
	},
	{
		// Source: @hubspot/mcp-server 0.4.0, code and README.
		Name: "hubspot", Title: "HubSpot", BuiltIn: true,
		Packages: []Package{npm("@hubspot/mcp-server",
			Variable{Name: "PRIVATE_APP_ACCESS_TOKEN", Required: true, Secret: true,
				Or: []string{"HUBSPOT_ACCESS_TOKEN"}, Help: "https://developers.hubspot.com/mcp"})},
	},
	{
		// Source: @apify/actors-mcp-server 0.16.0, code, README and server.json: a token,
		// or an earlier sign-in of Apify's own tool.
		Name: "apify", Title: "Apify", BuiltIn: true,
		Packages: []Package{npm("@apify/actors-mcp-server", Variable{Name: "APIFY_TOKEN", Secret: true})},
		Remotes: []Remote{
			{Type: "streamable-http", URL: "https://mcp.apify.com/"},
			{Type: "sse", URL: "https://mcp.apify.com/sse", Gone: "removed; the server is at https://mcp.apify.com"},
		},
	},
	{
		// Source: figma-developer-mcp 0.13.2, code and README.
		Name: "figma", Title: "Figma (Framelink)", BuiltIn: true,
		Packages: []Package{npm("figma-developer-mcp",
			Variable{Name: "FIGMA_API_KEY", Required: true, Secret: true, Or: []string{"FIGMA_OAUTH_TOKEN", "--figma-api-key"},
				Help: "https://help.figma.com/hc/en-us/articles/8085703771159-Manage-personal-access-tokens"})},
	},
	// Source: the READMEs of modelcontextprotocol/servers and of the packages of
	// 2026.8.31. These need no variable.
	{Name: "everything", Title: "Everything (reference)", BuiltIn: true,
		Packages: []Package{npm("@modelcontextprotocol/server-everything")}},
	{Name: "filesystem", Title: "Filesystem (reference)", BuiltIn: true,
		Packages: []Package{{Type: "npm", Identifier: "@modelcontextprotocol/server-filesystem", Runtime: "npx", Transport: "stdio",
			Arguments: []Argument{{Hint: "allowed_directory", Description: "a folder that it may use; a client with roots can give them instead", Repeated: true}}}}},
	{Name: "memory", Title: "Memory (reference)", BuiltIn: true,
		Packages: []Package{npm("@modelcontextprotocol/server-memory", Variable{Name: "MEMORY_FILE_PATH", Format: "filepath"})}},
	{Name: "sequential-thinking", Title: "Sequential Thinking (reference)", BuiltIn: true,
		Packages: []Package{npm("@modelcontextprotocol/server-sequential-thinking", Variable{Name: "DISABLE_THOUGHT_LOGGING", Format: "boolean"})}},
	{Name: "fetch", Title: "Fetch (reference)", BuiltIn: true, Packages: []Package{pypi("mcp-server-fetch")}},
	{Name: "git", Title: "Git (reference)", BuiltIn: true, Packages: []Package{pypi("mcp-server-git")}},
	{Name: "time", Title: "Time (reference)", BuiltIn: true, Packages: []Package{pypi("mcp-server-time")}},
}

var (
	braveKey = Variable{Name: "BRAVE_API_KEY", Required: true, Secret: true,
		Or:   []string{"BRAVE_API_KEY_FILE", "--brave-api-key", "--brave-api-key-file"},
		Help: "https://api-dashboard.search.brave.com/app/keys"}
	stripeKey = Variable{Name: "STRIPE_SECRET_KEY", Required: true, Secret: true,
		Or: []string{"--api-key"}, Help: "https://dashboard.stripe.com/apikeys"}
	atlassianVariables = []Variable{
		{Name: "JIRA_URL"},
		{Name: "JIRA_USERNAME"},
		{Name: "JIRA_API_TOKEN", Secret: true, Or: []string{"JIRA_PERSONAL_TOKEN"}, Help: atlassianTokens},
		{Name: "CONFLUENCE_URL"},
		{Name: "CONFLUENCE_USERNAME"},
		{Name: "CONFLUENCE_API_TOKEN", Secret: true, Or: []string{"CONFLUENCE_PERSONAL_TOKEN"}, Help: atlassianTokens},
	}
)

const atlassianTokens = "https://id.atlassian.com/manage-profile/security/api-tokens"

func npm(name string, vars ...Variable) Package {
	return Package{Type: "npm", Identifier: name, Runtime: "npx", Transport: "stdio", Variables: vars}
}

func pypi(name string, vars ...Variable) Package {
	return Package{Type: "pypi", Identifier: name, Runtime: "uvx", Transport: "stdio", Variables: vars}
}

var builtinKeys = sync.OnceValue(func() map[string]int {
	keys := make(map[string]int)
	for i := range builtin {
		for _, k := range builtin[i].keys() {
			keys[k] = i
		}
	}
	return keys
})

// builtinByKey returns a copy that the caller may change.
func builtinByKey(key string) (Entry, bool) {
	i, ok := builtinKeys()[key]
	if !ok {
		return Entry{}, false
	}
	return builtin[i].clone(), true
}
