package doctor

import (
	"strings"
	"testing"
)

func TestNearNamesMeanTheSame(t *testing.T) {
	for _, test := range []struct {
		want string
		have string
		near string
	}{
		// From the reports: the name on the left is read, that on the right was set.
		{"NOTION_TOKEN", "NOTION_API_KEY HOME PATH", "NOTION_API_KEY"},
		{"SCRAPELESS_KEY", "SCRAPELESS_API_KEY", "SCRAPELESS_API_KEY"},
		{"MCP_BRAVE_API_KEY", "BRAVE_API_KEY", "BRAVE_API_KEY"},
		{"SHODH_API_KEYS", "SHODH_API_KEY", "SHODH_API_KEY"},
		{"GITHUB_PERSONAL_ACCESS_TOKEN", "GITHUB_TOKEN GITHUB_PAT", "GITHUB_PAT GITHUB_TOKEN"},

		{"GITHUB_TOKEN", "github_token Github-Token", "Github-Token github_token"},
		{"NOTION_TOKEN", "NOTION_API_KEY NOTION_TOKEN notion_token NOTION_TOKENS", "NOTION_TOKEN notion_token NOTION_TOKENS NOTION_API_KEY"},
		{"NOTION_TOKEN", "NOTOIN_TOKEN NOTIN_TOKEN NOTIION_TOKEN NOTIOM_TOKEN", "NOTIION_TOKEN NOTIOM_TOKEN NOTOIN_TOKEN"},
		{"DATABASE_URL", "DATABSE_URL DATABASE_URLS", "DATABASE_URLS DATABSE_URL"},
		{"OPENAI_API_KEY", "OPENAI_APIKEY", "OPENAI_APIKEY"},

		// Not the same.
		{"EXA_API_KEY", "EVA_API_KEY", ""},
		{"GITHUB_TOKEN", "GITLAB_TOKEN", ""},
		{"GITHUB_TOKEN", "GITHUB_CLIENT_SECRET GITHUB_WEBHOOK_SECRET GITHUB_URL GITHUB_USER", ""},
		{"SLACK_BOT_TOKEN", "SLACK_APP_TOKEN SLACK_TEAM_ID", ""},
		{"API_KEY", "TOKEN KEY GITHUB_API_KEY SECRET", ""},
		{"TOKEN", "API_KEY", ""},
		{"JIRA_URL", "JIRA_API_TOKEN", ""},
		{"SERVICE1_URL", "SERVICE2_URL", ""},
		{"DATABASE1_URL", "DATABASE2_URL", ""},
		{"STRIPE_SECRET_KEY", "STRIPE_PUBLISHABLE_KEY", ""},
		{"ADDRESS", "ADDRES", ""},
		{"", "A TOKEN", ""},
		{"MCP_TOKEN", "TOKEN", ""},
	} {
		got := strings.Join(nearNames(test.want, strings.Fields(test.have)), " ")
		if got != test.near {
			t.Errorf("nearNames(%s, %s) = %s, want %s", test.want, test.have, got, test.near)
		}
	}
}
