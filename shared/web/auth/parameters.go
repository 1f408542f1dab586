package auth

import "strings"

// searchParameters are the parameters of a search, by Algolia's API specification
// of 2026-08. A secured key may hold them: they change what a search engine
// answers, and nothing here.
var searchParameters = names(`
advancedSyntax advancedSyntaxFeatures allowTyposOnNumericTokens alternativesAsExact analytics analyticsTags aroundLatLng
aroundLatLngViaIP aroundPrecision aroundRadius attributeCriteriaComputedByMinProximity attributesToHighlight
attributesToRetrieve attributesToSnippet clickAnalytics customRanking decompoundQuery disableExactOnAttributes
disableTypoToleranceOnAttributes distinct enableABTest enablePersonalization enableReRanking enableRules
exactOnSingleWordQuery explain facetFilters facetingAfterDistinct facets filters getRankingInfo highlightPostTag
highlightPreTag hitsPerPage ignorePlurals injectedItems insideBoundingBox insidePolygon keepDiacriticsOnCharacters length
maxFacetHits maxValuesPerFacet minProximity minWordSizefor1Typo minWordSizefor2Typos minimumAroundRadius mode
naturalLanguages numericFilters offset optionalFilters optionalWords page percentileComputation personalizationFilters
personalizationImpact query queryLanguages queryType ranking reRankingApplyFilter relevancyStrictness removeStopWords
removeWordsIfNoResults renderingContent replaceSynonymsInHighlight responseFields restrictHighlightAndSnippetArrays
restrictSearchableAttributes ruleContexts semanticSearch similarQuery snippetEllipsisText sortFacetValuesBy
sumOrFiltersScores synonyms tagFilters typoTolerance
`)

func names(text string) map[string]bool {
	set := map[string]bool{}
	for _, name := range strings.Fields(text) {
		set[name] = true
	}
	return set
}
